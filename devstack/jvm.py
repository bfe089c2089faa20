"""JVM flags of Cassandra, as its own start script would pass them."""

from pathlib import Path

_EXPORTS = (
    "java.base/jdk.internal.misc",
    "java.base/java.lang.ref",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.management/com.sun.jmx.remote.security",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.unsupported/sun.misc",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac.file",
)
_OPENS = (
    "jdk.compiler/com.sun.tools.javac",
    "java.base/java.lang.module",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.base/java.io",
    "java.base/java.lang.reflect",
    "java.base/java.lang",
    "java.base/java.util",
    "java.base/java.nio",
    "jdk.management/com.sun.management.internal",
)

# From Cassandra 5.0's conf/jvm17-server.options; nodetool requires them as well.
ACCESS_FLAGS = (
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    *(f"--add-exports={module}=ALL-UNNAMED" for module in _EXPORTS),
    *(f"--add-opens={module}=ALL-UNNAMED" for module in _OPENS),
)


def list_node_flags(
    folder: Path, *, jars: Path, jmx_port: int, jmx_password_file: Path, copies: int, heap_mb: int, optimized: bool
) -> list[str]:
    """Return all flags of one node that stores everything below `folder`.

    jmx_password_file: users and passwords of JMX. copies: number of nodes that store the roles. optimized: whether the
    second compiler is used, which takes more than half of a node's processor time in its first ten minutes.
    """
    properties = {
        "cassandra.config": f"file://{folder}/cassandra.yaml",
        "cassandra.storagedir": str(folder),
        "cassandra.logdir": str(folder),
        "cassandra-foreground": "yes",
        "cassandra.jmx.local.port": str(jmx_port),
        # It listens on this machine only, but any local user can connect, and JMX can run arbitrary code.
        "com.sun.management.jmxremote.authenticate": "true",
        "com.sun.management.jmxremote.password.file": str(jmx_password_file),
        "cassandra.system_auth.default_rf": str(copies),
        # Ten seconds by default: the first start waits for the superuser, which creates the other roles.
        "cassandra.superuser_setup_delay_ms": "500",
        # Each connection verifies a password hash. Passwords of 48 random bytes need no slow hash.
        "cassandra.auth_bcrypt_gensalt_log2_rounds": "4",
        "logback.configurationFile": str(folder / "logback.xml"),
        # 0 makes the second node fail with "Unable to contact any seeds".
        "cassandra.ring_delay_ms": "2000",
        "cassandra.skip_wait_for_gossip_to_settle": "0",
        # Two seconds by default, in which gossip continues. If the peer stops as well, the node then requests an
        # echo that never arrives, and only exits when that request times out after ten seconds.
        "cassandra.shutdown_announce_in_ms": "100",
    }
    jamm = next(iter(sorted(jars.glob("jamm-*.jar"))))
    return [
        f"-Xmx{heap_mb}M",
        "-Xss256k",
        "-XX:+ExitOnOutOfMemoryError",
        f"-javaagent:{jamm}",
        *([] if optimized else ["-XX:TieredStopAtLevel=1"]),
        *ACCESS_FLAGS,
        *(f"-D{name}={value}" for name, value in properties.items()),
    ]
