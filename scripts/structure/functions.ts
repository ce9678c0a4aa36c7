import ts from 'typescript'
import type { TextFile } from './tree.ts'

/** Longest function, in lines, with all that it contains. */
const MAX_LINES = 60
/** Most decisions of a function (cyclomatic complexity); a whole `switch` is one. */
const MAX_COMPLEXITY = 15
const MAX_EXCEPTIONS = 10
const PRODUCT = /^packages\/(?!testkit\/|cas-testsuite\/)(?:internal\/)?[^/]+\/src\/.*\.tsx?$/

/** By file and name, with the reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'packages/client/src/client.ts#createClient': 'one line for each route',
  'packages/daemon/src/app/daemon.ts#startInspected': 'composes, in the order of a start',
  'packages/internal/server/src/blob-pump.ts#pumpBlob': 'a loop per chunk, where a call that waits costs'
}

export interface FunctionFault {
  readonly path: string
  readonly line: number
  readonly message: string
}

type WithBody = ts.FunctionLikeDeclaration & { readonly body: ts.Node }

const hasBody = (node: ts.Node): node is WithBody =>
  ts.isFunctionLike(node) && 'body' in node && node.body !== undefined

const DECISIONS = new Set([
  ts.SyntaxKind.IfStatement,
  ts.SyntaxKind.ConditionalExpression,
  ts.SyntaxKind.ForStatement,
  ts.SyntaxKind.ForInStatement,
  ts.SyntaxKind.ForOfStatement,
  ts.SyntaxKind.WhileStatement,
  ts.SyntaxKind.DoStatement,
  ts.SyntaxKind.SwitchStatement,
  ts.SyntaxKind.CatchClause
])

const decides = (node: ts.Node): boolean =>
  DECISIONS.has(node.kind) ||
  (ts.isBinaryExpression(node) &&
    (node.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken ||
      node.operatorToken.kind === ts.SyntaxKind.BarBarToken))

function complexityOf(of: WithBody): number {
  let count = 1
  const visit = (node: ts.Node): void => {
    if (hasBody(node)) return
    if (decides(node)) count += 1
    ts.forEachChild(node, visit)
  }
  ts.forEachChild(of, visit)
  return count
}

function linesOf(of: WithBody, source: ts.SourceFile): number {
  const { line } = source.getLineAndCharacterOfPosition(of.getStart(source))
  return source.getLineAndCharacterOfPosition(of.end).line - line + 1
}

/** The functions of the product that are too long or decide too much, and exceptions that are not needed. */
export function checkFunctions(tree: readonly TextFile[], exceptions = EXCEPTIONS): FunctionFault[] {
  const faults: FunctionFault[] = []
  const used = new Set<string>()
  for (const { path, text } of tree) {
    if (!PRODUCT.test(path)) continue
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
    const judge = (node: WithBody): void => {
      const [lines, complexity] = [linesOf(node, source), complexityOf(node)]
      if (lines <= MAX_LINES && complexity <= MAX_COMPLEXITY) return
      const key = `${path}#${node.name?.getText(source) ?? ''}`
      used.add(key)
      if (key in exceptions) return
      const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
      const message = `${lines} lines and ${complexity} decisions: at most ${MAX_LINES} and ${MAX_COMPLEXITY}`
      faults.push({ path, line, message })
    }
    const visit = (node: ts.Node): void => {
      if (hasBody(node)) judge(node)
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  const list = tree.find(({ path }) => path === 'scripts/structure/functions.ts')
  if (list === undefined) return faults
  const refuse = (message: string): number => faults.push({ path: list.path, line: 1, message })
  for (const key of Object.keys(exceptions)) if (!used.has(key)) refuse(`${key} needs no exception`)
  if (Object.keys(exceptions).length > MAX_EXCEPTIONS) refuse(`more than ${MAX_EXCEPTIONS} exceptions`)
  return faults
}
