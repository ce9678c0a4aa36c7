// Copies the declarations of bundled private packages into a published one: `node scripts/inline-internal-types.ts FOLDER`.
// tsup bundles their JavaScript, but tsc leaves `@svc/internal-*` specifiers in the declarations, and nobody can install those.
import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const SPECIFIER = /(['"])@svc\/internal-([a-z-]+)\1/g

const dist = resolve(process.argv[2] ?? '.', 'dist')
const internal = resolve(import.meta.dirname, '../packages/internal')
const copied = new Set<string>()

/** Rewrites one declaration file, and brings in the packages that it names, which may name others. */
function inline(path: string): void {
  const text = readFileSync(path, 'utf8')
  const names = new Set<string>()
  const rewritten = text.replace(SPECIFIER, (_match, quote: string, name: string) => {
    names.add(name)
    const target = relative(dirname(path), join(dist, 'internal', name, 'index.js'))
    return `${quote}${target.startsWith('.') ? target : `./${target}`}${quote}`
  })
  if (rewritten !== text) writeFileSync(path, rewritten)
  for (const name of names) {
    if (copied.has(name)) continue
    copied.add(name)
    const from = join(internal, name, 'dist')
    for (const file of globSync('**/*.d.ts', { cwd: from })) {
      cpSync(join(from, file), join(dist, 'internal', name, file))
      inline(join(dist, 'internal', name, file))
    }
  }
}

for (const file of globSync('**/*.d.ts', { cwd: dist, exclude: ['internal/**'] })) inline(join(dist, file))
