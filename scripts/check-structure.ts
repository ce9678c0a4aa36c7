// Checks what no tool of others does: `node scripts/check-structure.ts`, part of `pnpm check`.
import { checkTree } from './structure/rules.ts'
import { readTree } from './structure/tree.ts'

const tree = readTree(new URL('..', import.meta.url).pathname)
const violations = checkTree(tree)
for (const { rule, path, line, message } of violations) console.error(`${path}:${line}: ${message} [${rule}]`)
console.log(`structure: ${tree.length} files, ${violations.length} violations`)
process.exitCode = violations.length === 0 ? 0 : 1
