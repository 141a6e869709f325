"""An import-linter contract: a package may import itself and a list of modules, and nothing else.

The linter's own `forbidden` contract names what may not be imported, so it allows whatever is added later.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class OnlyContract(Contract):
    """Every module of `package` imports only `package` and `allowed`, apart from the imports in `but_only`.

    Each of these imports is ``MODULE -> IMPORTED``.
    """

    package = fields.StringField()
    allowed = fields.ListField(subfield=fields.StringField())
    but_only = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the result, with the imports that the contract does not allow."""
        package = str(self.package)
        allowed = {str(name) for name in self.allowed}  # type: ignore[attr-defined]
        single = {tuple(str(one).split(" -> ")) for one in self.but_only}  # type: ignore[attr-defined]
        modules = {package} | graph.find_descendants(package)
        broken = [
            (module, imported)
            for module in sorted(modules)
            for imported in sorted(graph.find_modules_directly_imported_by(module))
            if imported not in modules
            and imported.split(".")[0] not in allowed
            and (module, imported) not in single
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that is not allowed."""
        for module, imported in check.metadata["broken"]:
            output.print_error(f"{module} imports {imported}")
