"""Which distribution brings a module. Curated: nothing is guessed from an index, where a stranger may have the name."""

from __future__ import annotations

_SAME_NAME = """
aiohttp anyio asynctest attrs babel build cffi click cloudpickle coverage curio cython ddt django docutils
exceptiongroup faker flask flask_sqlalchemy freezegun gevent graphviz greenlet httpretty httpx hypothesis
importlib_metadata importlib_resources jinja2 lark lxml markdown matplotlib mock msgpack networkx numpy orjson
packaging pandas parameterized pexpect pretend psutil pydantic pygments pymongo pytest pytest_asyncio
pytest_benchmark pytest_cov pytest_httpserver pytest_mock pytest_regressions pytest_subtests pytest_timeout
pytest_trio pytz redis requests requests_mock responses respx rich scipy setuptools sh simplejson six
sortedcontainers sqlalchemy syrupy testfixtures testtools time_machine toml tomli tomli_w tomlkit tree_sitter trio
trustme twisted typing_extensions tzdata ujson unittest2 virtualenv werkzeug wheel
"""
_OTHER_NAME = """
attr:attrs bs4:beautifulsoup4 bson:pymongo cairo:pycairo Crypto:pycryptodome cv2:opencv-python-headless
Cython:cython dateutil:python-dateutil distutils:setuptools docx:python-docx dotenv:python-dotenv
factory:factory-boy fitz:pymupdf gi:pygobject git:gitpython google.protobuf:protobuf jose:python-jose jwt:pyjwt
ldap:python-ldap Levenshtein:levenshtein magic:python-magic memcache:python-memcached MySQLdb:mysqlclient
nacl:pynacl nose:pynose OpenSSL:pyopenssl PIL:pillow pkg_resources:setuptools<81 pptx:python-pptx
psycopg2:psycopg2-binary rest_framework:djangorestframework ruamel:ruamel-yaml serial:pyserial skimage:scikit-image
sklearn:scikit-learn slugify:python-slugify usb:pyusb vcr:vcrpy win32api:pywin32 wx:wxpython xdist:pytest-xdist
yaml:pyyaml zmq:pyzmq zope.interface:zope-interface
"""
DISTRIBUTIONS = {
    **{name: name.replace("_", "-") for name in _SAME_NAME.split()},
    **dict(pair.split(":", 1) for pair in _OTHER_NAME.split()),
}
"""Import name → what to install."""
