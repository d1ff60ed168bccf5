"""The sign-in providers by the names that configs of kind `sign_in` use."""

from vendors.signin.alipay import Alipay
from vendors.signin.amazon import Amazon
from vendors.signin.apple import Apple
from vendors.signin.facebook import Facebook
from vendors.signin.game_center import GameCenter
from vendors.signin.google import Google
from vendors.signin.instagram import Instagram
from vendors.signin.jd import JD
from vendors.signin.kakao import Kakao
from vendors.signin.line import Line
from vendors.signin.microsoft import Microsoft
from vendors.signin.play_games import PlayGames
from vendors.signin.protocols import SignIn
from vendors.signin.qq import QQ
from vendors.signin.taobao import Taobao
from vendors.signin.wechat import WeChat
from vendors.signin.wechat_mini import WeChatMini
from vendors.signin.weibo import Weibo

PROVIDERS: dict[str, type[SignIn]] = {
    "alipay": Alipay,
    "amazon": Amazon,
    "apple": Apple,
    "facebook": Facebook,
    "game_center": GameCenter,
    "google": Google,
    "instagram": Instagram,
    "jd": JD,
    "kakao": Kakao,
    "line": Line,
    "microsoft": Microsoft,
    "play_games": PlayGames,
    "qq": QQ,
    "taobao": Taobao,
    "wechat": WeChat,
    "wechat_mini": WeChatMini,
    "weibo": Weibo,
}
"""The clients of the providers."""

HOSTS: dict[str, tuple[str, ...]] = {
    "alipay": ("https://openapi.alipay.com",),
    "amazon": ("https://api.amazon.com",),
    "apple": ("https://appleid.apple.com",),
    "facebook": ("https://graph.facebook.com", "https://limited.facebook.com"),
    "google": ("https://www.googleapis.com",),
    "instagram": ("https://api.instagram.com", "https://graph.instagram.com"),
    "jd": ("https://open-oauth.jd.com", "https://api.jd.com"),
    "kakao": ("https://kapi.kakao.com",),
    "line": ("https://api.line.me",),
    "microsoft": ("https://graph.microsoft.com", "https://login.microsoftonline.com"),
    "play_games": ("https://www.googleapis.com",),
    "qq": ("https://graph.qq.com",),
    "taobao": ("https://oauth.taobao.com",),
    "wechat": ("https://api.weixin.qq.com",),
    "wechat_mini": ("https://api.weixin.qq.com",),
    "weibo": ("https://api.weibo.com",),
}
"""The default addresses of the providers, for checks of a deployment."""

DEFAULT_PROVIDERS: dict[str, str] = {
    "ios_vendor_id": "apple",
    "social_network_a": "facebook",
    "search_vendor_id": "google",
    "photo_network": "instagram",
    "microblog": "weibo",
    "chat_network": "qq",
    "im_network_a": "qq",
    "im_network_b": "wechat",
    "payment_wallet_a": "alipay",
    "software_vendor_id": "microsoft",
    "retail_platform": "jd",
    "ios_games_service": "game_center",
    "android_games_service": "play_games",
}
"""The default provider of each platform."""

CHECK_NONCE = frozenset({"apple", "facebook", "google", "microsoft"})
"""The providers whose clients compare the `nonce` that is sent with a token, or its hash."""

OPTIONAL_FIELDS: dict[str, frozenset[str]] = {
    "apple": frozenset({"id", "code", "nonce"}),
    "facebook": frozenset({"id", "nonce"}),
    "google": frozenset({"nonce"}),
    "microsoft": frozenset({"nonce"}),
    "qq": frozenset({"open_id"}),
}
"""The fields of `Proof` that a client reads if they are sent."""

CLIENT_FIELDS: dict[str, frozenset[str]] = {
    "ios_vendor_id": frozenset({"id", "code", "id_token", "nonce"}),
    "social_network_a": frozenset({"access_token", "id", "expiration_date", "nonce"}),
    "search_vendor_id": frozenset({"id_token", "nonce"}),
    "photo_network": frozenset({"code"}),
    "microblog": frozenset({"access_token"}),
    "chat_network": frozenset({"access_token"}),
    "im_network_a": frozenset({"access_token", "open_id"}),
    "im_network_b": frozenset({"code"}),
    "payment_wallet_a": frozenset({"code"}),
    "software_vendor_id": frozenset({"access_token", "nonce"}),
    "retail_platform": frozenset({"code"}),
    "ios_games_service": frozenset(
        {"player_id", "team_player_id", "public_key_url", "salt", "signature", "timestamp"}
    ),
    "android_games_service": frozenset({"player_id"}),
}
"""The fields of `Proof` that clients send with each platform (§2.2)."""
