// What of a package's `dist` the sources of today gave. A build starts with an empty folder, but a build that comes out of turbo's
// cache is laid over what is there, and chunks have their hash in their name: those of another build would be published too.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** A path in quotes; workers are named without their extension, which is that of the file that starts them. */
const MENTION = /["'`](\.{1,2}\/[\w./-]+)(?:["'`]|\$\{)/g

/** The paths in a value of package.json, however deep. */
const pathsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : Object.values((value ?? {}) as object).flatMap(pathsIn)

/** The files of a package's folder that are below one of its folders, as paths in it. */
const filesBelow = (folder: string, below: string): string[] =>
  existsSync(join(folder, below))
    ? readdirSync(join(folder, below), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    : []

/** The JavaScript that the entries in package.json lead to, workers among it: they are mentioned like what is imported. */
function reached(folder: string): ReadonlySet<string> {
  const { bin, exports, imports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Readonly<
    Record<string, unknown>
  >
  const found = new Set(
    pathsIn([bin, exports, imports])
      .map((target) => normalize(target))
      .filter((path) => /^(?:bin|dist)\/.*\.c?js$/.test(path))
  )
  for (const path of found) {
    if (!existsSync(join(folder, path))) continue
    for (const [, mentioned = ''] of readFileSync(join(folder, path), 'utf8').matchAll(MENTION)) {
      const target = join(dirname(path), mentioned)
      for (const file of [target, `${target}.js`])
        if (file.endsWith('.js') && existsSync(join(folder, file))) found.add(file)
    }
  }
  return found
}

/**
 * Files below `dist` that a fresh build would not give, as paths in the package's folder, sorted: JavaScript that no entry leads
 * to, declarations without a source, maps of either.
 */
export function staleFiles(folder: string): string[] {
  const files = filesBelow(folder, 'dist')
  const scripts = reached(folder)
  const declarations = files.filter((path) => path.endsWith('.d.ts'))
  const inlined = new Set(
    declarations.flatMap((path) =>
      [...readFileSync(join(folder, path), 'utf8').matchAll(MENTION)]
        .map(([, mentioned = '']) => join(dirname(path), mentioned))
        .flatMap((target) => /^dist\/internal\/[^/]+\//.exec(target)?.[0] ?? [])
    )
  )
  const isStale = (path: string): boolean => {
    if (path.endsWith('.js')) return !scripts.has(path)
    if (!path.endsWith('.d.ts')) return false
    const internal = /^dist\/internal\/[^/]+\//.exec(path)?.[0]
    if (internal !== undefined) return !inlined.has(internal)
    return !existsSync(join(folder, path.replace(/^dist\//, 'src/').replace(/\.d\.ts$/, '.ts')))
  }
  return files.filter((path) => isStale(path.replace(/\.map$/, ''))).sort()
}

/** Removes them, so that what is packed is what the sources give. */
export function removeStaleFiles(folder: string): void {
  for (const path of staleFiles(folder)) rmSync(join(folder, path))
}
