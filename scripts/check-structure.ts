// Checks that the house is built as ARCHITECTURE.md says: `node scripts/check-structure.ts`, part of `pnpm test`.
import { checkTree } from './structure/rules.ts'
import { readTree } from './structure/tree.ts'

const tree = readTree(new URL('..', import.meta.url).pathname)
const violations = checkTree(tree)
for (const { rule, path, line, message } of violations) console.error(`${path}:${line}: ${message} [${rule}]`)
const files = tree.packages.reduce((sum, { src, other }) => sum + src.length + other.length, 0)
console.log(`structure: ${tree.packages.length} packages, ${files} files, ${violations.length} violations`)
process.exitCode = violations.length === 0 ? 0 : 1
