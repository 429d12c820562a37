from __future__ import annotations

import pytest

from tests.notify.server import serving


@pytest.fixture
def server():
    """An HTTP server of our own."""
    with serving() as found:
        yield found


@pytest.fixture
def services(server, monkeypatch):
    """The robots of Feishu, Lark, DingTalk and WeCom as apprise has them, but at our server: name -> address."""
    from apprise.plugins.dingtalk import NotifyDingTalk
    from apprise.plugins.feishu import NotifyFeishu
    from apprise.plugins.lark import NotifyLark
    from apprise.plugins.wecombot import NotifyWeComBot

    base = f"http://{server.host}"
    for plugin, url in (
        (NotifyFeishu, f"{base}/feishu/{{token}}"),
        (NotifyLark, f"{base}/lark/"),
        (NotifyDingTalk, f"{base}/dingtalk/{{token}}"),
        (NotifyWeComBot, f"{base}/wecom/{{key}}"),
    ):
        monkeypatch.setattr(plugin, "notify_url", url)
        monkeypatch.setattr(plugin, "request_rate_per_sec", 0)
    return {
        "feishu": "feishu://S3cretToken",
        "lark": "lark://S3cretToken",
        "dingtalk": "dingtalk://S3cretToken",
        "wecom": "wecombot://S3cretToken",
        "webhook": f"json://{server.host}/S3cretToken?rto=0.3&cto=0.3",
    }
