// Checks what no tool of others does: `node scripts/check-structure.ts`, part of `pnpm check`.
import { readFileSync } from 'node:fs'
import { checkGlossary, documentsOf, packageSources } from './glossary.ts'
import { checkTree } from './structure/rules.ts'
import { readTree } from './structure/tree.ts'

const root = new URL('..', import.meta.url).pathname
const tree = readTree(root)
const violations = checkTree(tree)
const words = checkGlossary(readFileSync(`${root}docs/glossary.md`, 'utf8'), packageSources(root), documentsOf(root))
for (const { rule, path, line, message } of violations) console.error(`${path}:${line}: ${message} [${rule}]`)
for (const problem of words) console.error(`${problem} [glossary]`)
const count = violations.length + words.length
console.log(`structure: ${tree.length} files, ${count} violations`)
process.exitCode = count === 0 ? 0 : 1
