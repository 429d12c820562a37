"""The server of `tracker page`: the same documents as the reports, with links between them and forms for actions.

`links` says which pages there are and what their addresses mean, `access` who may do what, `answers` makes the results,
`app` the routes.
"""
