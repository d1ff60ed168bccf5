"""What a migration must not do to a table that may be large: hold a lock on it for longer than a moment.

A statement is judged by what PostgreSQL does for it, and not by the size that a table has today. A table that the
same file has created is empty, so all is allowed on it. What is not known to be quick is refused. Functions that a
statement calls are not looked into.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pglast import ast, parse_sql
from pglast.enums import AlterTableType, ConstrType, ObjectType
from pglast.visitors import Visitor

from storage.postgres.migrate import ALONE, concurrent_index
from storage.postgres.partitions import PARTITIONED

_QUICK = (
    ast.AlterFunctionStmt,
    ast.CommentStmt,
    ast.CreateEnumStmt,
    ast.CreateFunctionStmt,
    ast.CreateSeqStmt,
    ast.CreateTrigStmt,
    ast.GrantStmt,
    ast.RenameStmt,
    ast.ViewStmt,
)
"""Statements that change the catalog only."""
_QUICK_CHANGES = {
    AlterTableType.AT_ColumnDefault,
    AlterTableType.AT_DropColumn,
    AlterTableType.AT_DropConstraint,
    AlterTableType.AT_DropNotNull,
    AlterTableType.AT_DisableTrig,
    AlterTableType.AT_EnableTrig,
    AlterTableType.AT_SetRelOptions,
    AlterTableType.AT_SetStatistics,
}
_INDEXES = {ConstrType.CONSTR_PRIMARY, ConstrType.CONSTR_UNIQUE}
_SCANS = {
    ConstrType.CONSTR_CHECK: "a check in `add column` scans the table: add the constraint `not valid`",
    ConstrType.CONSTR_FOREIGN: "`references` in `add column` scans the table: add the constraint `not valid`",
    ConstrType.CONSTR_PRIMARY: "a key in `add column` builds an index while the table is locked",
    ConstrType.CONSTR_UNIQUE: "a key in `add column` builds an index while the table is locked",
    ConstrType.CONSTR_GENERATED: "a generated column rewrites the table",
    ConstrType.CONSTR_IDENTITY: "an identity column rewrites the table",
}
_SERIAL = {"serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"}
_STABLE = {"current_setting", "now", "statement_timestamp", "transaction_timestamp"}
"""Functions that a default may call: their value is stored once, and not in each row."""


def faults(sql: str) -> list[str]:
    """Return what a file of migrations does that may lock a large table for long. Empty: nothing."""
    statements = [raw.stmt for raw in parse_sql(sql)]
    if sql.startswith(ALONE):
        return list(_faults_alone(sql, statements))
    made: set[str] = set()
    found = []
    for statement in statements:
        if isinstance(statement, ast.CreateStmt) and not statement.if_not_exists:
            made.add(_name(statement.relation))
        found += _faults(statement, made)
        if isinstance(statement, ast.RenameStmt):
            made.discard(statement.newname)
    return found


def _name(table: ast.RangeVar) -> str:
    return table.relname if table.schemaname in {None, "public"} else f"{table.schemaname}.{table.relname}"


def _faults_alone(sql: str, statements: list[ast.Node]) -> Iterator[str]:
    """A file without a transaction has no time limit, so it must block nobody while it works or waits."""
    if len(statements) != 1:
        yield "a file without a transaction has one statement"
        return
    match statements[0]:
        case ast.IndexStmt(concurrent=True):
            if concurrent_index(sql) is None:
                yield "an index needs a name, so that the migrator can repeat a build that was interrupted"
            if statements[0].relation.relname in {table.name for table in PARTITIONED}:
                yield "PostgreSQL builds no index concurrently on a table with partitions: a job builds it on each"
        case ast.DropStmt(removeType=ObjectType.OBJECT_INDEX, concurrent=True, missing_ok=missing_ok):
            if not missing_ok:
                yield "`drop index concurrently` needs `if exists`, because it may be repeated"
        case ast.AlterTableStmt(cmds=[ast.AlterTableCmd(subtype=AlterTableType.AT_ValidateConstraint)]):
            pass
        case _:
            yield "such a file may only build or drop an index concurrently, or validate a constraint"


def _faults(statement: ast.Node, made: set[str]) -> Iterator[str]:
    if (rule := _RULES.get(type(statement))) is not None:
        yield from rule(statement, made)
        for change in _changes_within(statement):
            yield from _of_rows(change, made)
    elif not isinstance(statement, _QUICK):
        yield f"{type(statement).__name__} is not known to be quick, or hides what it does"


def _of_table(statement: ast.CreateStmt, made: set[str]) -> Iterator[str]:
    if statement.partbound is not None and statement.inhRelations[0].relname not in made:
        yield "`partition of` locks the whole table: create the partition alone and attach it"


def _of_index(statement: ast.IndexStmt, made: set[str]) -> Iterator[str]:
    if statement.concurrent:
        yield f"`concurrently` needs the first line `{ALONE}`"
    elif _name(statement.relation) not in made:
        yield f"an index on {statement.relation.relname} is built `concurrently`, in a file of its own"


def _of_changes(statement: ast.AlterTableStmt, made: set[str]) -> Iterator[str]:
    if _name(statement.relation) not in made:
        for change in statement.cmds:
            yield from _faults_of_change(change)


def _of_rows(statement: ast.UpdateStmt | ast.DeleteStmt, made: set[str]) -> Iterator[str]:
    if _name(statement.relation) not in made:
        yield f"rows of {statement.relation.relname} are changed by a job, in batches"


def _of_copies(statement: ast.InsertStmt, made: set[str]) -> Iterator[str]:
    if copied := _tables(statement.selectStmt) - made:
        yield f"rows of {', '.join(sorted(copied))} are copied by a job, in batches"


def _of_drops(statement: ast.DropStmt, made: set[str]) -> Iterator[str]:
    if statement.removeType == ObjectType.OBJECT_INDEX:
        yield "an index is dropped `concurrently`, in a file of its own"


_RULES: Mapping[type[ast.Node], Callable[[Any, set[str]], Iterator[str]]] = {
    ast.AlterTableStmt: _of_changes,
    ast.CreateStmt: _of_table,
    ast.DeleteStmt: _of_rows,
    ast.DropStmt: _of_drops,
    ast.IndexStmt: _of_index,
    ast.InsertStmt: _of_copies,
    ast.UpdateStmt: _of_rows,
}


def _changes_within(statement: ast.Node) -> list[Any]:
    """Return the changes of rows in the `with` clauses of a statement."""
    found: list[Any] = []

    class _Changes(Visitor):
        def visit_UpdateStmt(self, _ancestors: Any, change: ast.UpdateStmt) -> None:  # noqa: N802 - named by pglast
            found.append(change)

        def visit_DeleteStmt(self, _ancestors: Any, change: ast.DeleteStmt) -> None:  # noqa: N802 - named by pglast
            found.append(change)

    _Changes()(statement)
    return [change for change in found if change is not statement]


def _tables(node: ast.Node | None) -> set[str]:
    """Return the tables that a statement reads."""
    found: set[str] = set()

    class _Reads(Visitor):
        def visit_RangeVar(self, _ancestors: Any, table: ast.RangeVar) -> None:  # noqa: N802 - named by pglast
            found.add(_name(table))

    if node is not None:
        _Reads()(node)
    return found


def _faults_of_change(change: ast.AlterTableCmd) -> Iterator[str]:
    match change.subtype:
        case AlterTableType.AT_AddColumn:
            if change.def_.typeName.names[-1].sval in _SERIAL:
                yield "a serial column rewrites the table"
            yield from _faults_of_column(change.def_.constraints or ())
        case AlterTableType.AT_AddConstraint:
            yield from _faults_of_constraint(change.def_)
        case AlterTableType.AT_AlterColumnType:
            yield "a new type rewrites the table: add a column, and have a job fill it"
        case AlterTableType.AT_SetNotNull:
            yield "`set not null` scans the table: add `check (… is not null) not valid`, and validate it"
        case AlterTableType.AT_ValidateConstraint:
            yield f"a constraint is validated in a file of its own with the first line `{ALONE}`"
        case subtype if subtype not in _QUICK_CHANGES:
            yield f"{subtype.name} is not known to be quick"


def _faults_of_column(constraints: tuple[ast.Constraint, ...]) -> Iterator[str]:
    kinds = {constraint.contype: constraint for constraint in constraints}
    yield from (fault for kind, fault in _SCANS.items() if kind in kinds)
    default = kinds.get(ConstrType.CONSTR_DEFAULT)
    if default is None:
        if ConstrType.CONSTR_NOTNULL in kinds:
            yield "a new column that is `not null` needs a default"
    elif volatile := _functions(default.raw_expr) - _STABLE:
        yield f"a default that calls {', '.join(sorted(volatile))} rewrites the table"


def _functions(node: ast.Node) -> set[str]:
    found: set[str] = set()

    class _Calls(Visitor):
        def visit_FuncCall(self, _ancestors: Any, call: ast.FuncCall) -> None:  # noqa: N802 - named by pglast
            found.add(call.funcname[-1].sval)

    _Calls()(node)
    return found


def _faults_of_constraint(constraint: ast.Constraint) -> Iterator[str]:
    if constraint.contype in _INDEXES:
        if constraint.indexname is None:
            yield "a key is added `using index`, after the index was built concurrently"
        elif constraint.contype == ConstrType.CONSTR_PRIMARY:
            yield "a primary key scans the table, unless its columns are `not null`: add a unique constraint"
    elif not constraint.skip_validation:
        yield "a constraint is added `not valid`, and validated in a later file"
