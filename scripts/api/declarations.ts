// What a package exports, read from the declarations that its users get (dist/*.d.ts), without a type checker: emitted
// declarations name everything that they export.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'

/** One export of an entry. */
export interface Exported {
  readonly name: string
  /** Its declarations without comments and private members, as TypeScript prints them; several for overloads. */
  readonly text: string
  /** True where a docstring stands before one of the declarations, or where another package of ours declares it. */
  readonly isDocumented: boolean
  /** What it names of other packages of ours; `any` is of none. */
  readonly foreign: readonly string[]
}

interface Declared {
  readonly nodes: readonly (ts.Statement | ts.VariableDeclaration)[]
  readonly file: ts.SourceFile
}
type Found = Declared | { readonly from: string; readonly as: string }

const printer = ts.createPrinter({ removeComments: true, omitTrailingSemicolon: true })

/** Reads declaration files, each once. */
export class Declarations {
  readonly #files = new Map<string, ts.SourceFile>()
  readonly #exports = new Map<string, Map<string, Found>>()

  /** The exports of one entry, by name. */
  of(entry: string): Exported[] {
    return [...this.#exportsOf(entry)]
      .map(([name, found]) => ({ name, ...describe(name, found) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #read(path: string): ts.SourceFile {
    const known = this.#files.get(path)
    if (known !== undefined) return known
    const file = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)
    this.#files.set(path, file)
    return file
  }

  #exportsOf(path: string): Map<string, Found> {
    const known = this.#exports.get(path)
    if (known !== undefined) return known
    const found = new Map<string, Found>()
    this.#exports.set(path, found)
    const file = this.#read(path)
    const locals = localsOf(file)
    for (const [name, { nodes, isExported }] of locals) if (isExported) found.set(name, { nodes, file })
    for (const statement of file.statements.filter(ts.isExportDeclaration)) {
      const specifier = statement.moduleSpecifier
      const from = specifier !== undefined && ts.isStringLiteral(specifier) ? specifier.text : undefined
      const clause = statement.exportClause
      if (clause === undefined) {
        for (const [name, each] of this.#exportsOf(target(path, from ?? ''))) found.set(name, each)
        continue
      }
      if (!ts.isNamedExports(clause)) throw new Error(`${path}: "export * as" is not read`)
      for (const { name, propertyName } of clause.elements) {
        found.set(name.text, this.#resolve(path, from, (propertyName ?? name).text))
      }
    }
    return found
  }

  /** Where `name`, exported by `from` or declared or imported in `path` itself, is declared. */
  #resolve(path: string, from: string | undefined, name: string): Found {
    if (from !== undefined) {
      if (!from.startsWith('.')) return { from, as: name }
      const found = this.#exportsOf(target(path, from)).get(name)
      if (found === undefined) throw new Error(`${path}: ${from} exports no ${name}`)
      return found
    }
    const file = this.#read(path)
    const local = localsOf(file).get(name)
    if (local !== undefined) return { nodes: local.nodes, file }
    for (const statement of file.statements.filter(ts.isImportDeclaration)) {
      const bindings = statement.importClause?.namedBindings
      if (bindings === undefined || !ts.isNamedImports(bindings)) continue
      const element = bindings.elements.find((each) => each.name.text === name)
      if (element === undefined) continue
      return this.#resolve(
        path,
        (statement.moduleSpecifier as ts.StringLiteral).text,
        (element.propertyName ?? element.name).text
      )
    }
    throw new Error(`${path}: ${name} is declared nowhere`)
  }
}

/** The declaration file that a relative specifier means. */
function target(path: string, specifier: string): string {
  const base = join(dirname(path), specifier)
  const found = [base.replace(/\.[jt]s$/, '.d.ts'), `${base}.d.ts`].find((each) => existsSync(each))
  if (found === undefined) throw new Error(`${path}: there is no ${specifier}`)
  return found
}

function localsOf(file: ts.SourceFile): Map<string, { nodes: ts.Statement[]; isExported: boolean }> {
  const found = new Map<string, { nodes: ts.Statement[]; isExported: boolean }>()
  const add = (name: string, node: ts.Statement): void => {
    const isExported =
      ts.canHaveModifiers(node) &&
      ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
    const known = found.get(name)
    if (known === undefined) found.set(name, { nodes: [node], isExported })
    else known.nodes.push(node)
  }
  for (const statement of file.statements) {
    if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) add(name.getText(file), statement)
    } else if (
      ts.isFunctionDeclaration(statement) ||
      ts.isClassDeclaration(statement) ||
      ts.isInterfaceDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement)
    ) {
      if (statement.name !== undefined) add(statement.name.text, statement)
    }
  }
  return found
}

function describe(name: string, found: Found): Omit<Exported, 'name'> {
  if ('from' in found) {
    const names = found.as === name ? name : `${found.as} as ${name}`
    return { text: `export { ${names} } from '${found.from}'`, isDocumented: true, foreign: [] }
  }
  const { nodes, file } = found
  return {
    text: nodes
      .map((node) => printer.printNode(ts.EmitHint.Unspecified, publicPart(node as ts.Statement), file))
      .join('\n'),
    isDocumented: nodes.some((node) => ts.getJSDocCommentsAndTags(node).length > 0 || isStatic(node, file)),
    foreign: [...new Set(nodes.flatMap((node) => foreignIn(publicPart(node as ts.Statement), importedOf(file))))]
  }
}

/** The names that a file imports of other packages of ours. */
const importedOf = (file: ts.SourceFile): ReadonlySet<string> =>
  new Set(
    file.statements.filter(ts.isImportDeclaration).flatMap(({ importClause, moduleSpecifier }) => {
      const bindings = importClause?.namedBindings
      const isOurs = ts.isStringLiteral(moduleSpecifier) && moduleSpecifier.text.startsWith('@svc/')
      return isOurs && bindings !== undefined && ts.isNamedImports(bindings)
        ? bindings.elements.map(({ name }) => name.text)
        : []
    })
  )

function foreignIn(node: ts.Node, imported: ReadonlySet<string>): string[] {
  if (node.kind === ts.SyntaxKind.AnyKeyword) return ['any']
  if (ts.isIdentifier(node)) return imported.has(node.text) ? [node.text] : []
  const found: string[] = []
  ts.forEachChild(node, (child) => void found.push(...foreignIn(child, imported)))
  return found
}

/** The type of a schema's values, which the schema's own docstring tells of. */
const isStatic = (node: ts.Statement | ts.VariableDeclaration, file: ts.SourceFile): boolean =>
  ts.isTypeAliasDeclaration(node) && /^Type\.Static<typeof \w+>$/.test(node.type.getText(file))

/** A class without what only itself can reach, and everything without `declare`. */
function publicPart(node: ts.Statement): ts.Statement {
  if (!ts.isClassDeclaration(node)) return node
  const members = node.members.filter(
    (member) =>
      !(member.name !== undefined && ts.isPrivateIdentifier(member.name)) &&
      !(
        ts.canHaveModifiers(member) &&
        ts.getModifiers(member)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)
      )
  )
  return ts.factory.updateClassDeclaration(
    node,
    node.modifiers,
    node.name,
    node.typeParameters,
    node.heritageClauses,
    members
  )
}
