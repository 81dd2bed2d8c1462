"""A process with a volume open, whose forked children open it too: argument 1 is the loadable
extension, argument 2 the VOLUME.toml."""
import multiprocessing, sqlite3, sys

extension, path = sys.argv[1:]
loader = sqlite3.connect(":memory:")
if not hasattr(loader, "enable_load_extension"):
    print("skipped: this python3 loads no extensions")
    sys.exit()
loader.enable_load_extension(True)
loader.load_extension(extension)
context = multiprocessing.get_context("fork")

def connect():
    return sqlite3.connect(f"file:{path}?vfs=tantalum", uri=True, isolation_level=None, timeout=0)

def write(who):
    try:
        connection = connect()
        connection.execute("INSERT INTO t VALUES (?)", (who,))
        connection.close()
        return "wrote"
    except sqlite3.Error as error:
        return error.sqlite_errorname

def in_child(who, say):
    print(f"{say}:", write(who), flush=True)

parent = connect()
parent.execute("CREATE TABLE t(who)")
parent.execute("INSERT INTO t VALUES ('parent')")
child = context.Process(target=in_child, args=("too early", "child"))
child.start()
child.join()
parent.execute("INSERT INTO t VALUES ('parent, later')")

end = context.Event()
idle = context.Process(target=end.wait)
idle.start()
parent.close()
parent = connect()
print("idle child: reopened", flush=True)
end.set()
idle.join()

parent.close()
later = context.Process(target=in_child, args=("child", "later child"))
later.start()
later.join()
print(connect().execute("SELECT who FROM t ORDER BY who").fetchall())
