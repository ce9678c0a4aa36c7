import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Import, importsOf, withoutComments } from './imports.ts'

export interface SourceFile {
  /** From the repository's root, with forward slashes. */
  readonly path: string
  readonly text: string
  /** The text with its comments blanked out. */
  readonly code: string
  readonly imports: readonly Import[]
}

export interface Package {
  /** The folder's name under packages/, or `bench`. */
  readonly room: string
  readonly folder: string
  readonly name: string
  /** Never published, so development dependencies are as good as others. */
  readonly isPrivate: boolean
  readonly dependencies: readonly string[]
  readonly devDependencies: readonly string[]
  /** Declared subpaths: `.`, `./contract`. */
  readonly subpaths: readonly string[]
  readonly src: readonly SourceFile[]
  /** Everything else that is TypeScript: tests, configuration. */
  readonly other: readonly SourceFile[]
}

export interface Tree {
  readonly packages: readonly Package[]
  /** Packages that the root declares: tools, which every package's tests may use. */
  readonly rootDependencies: readonly string[]
  /** All text files of the repository. */
  readonly texts: readonly { readonly path: string; readonly text: string }[]
}

const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', '.git', '.turbo', 'coverage'])
const TEXT = /\.(?:ts|js|mjs|json|md|ya?ml|toml|sh|py|service|socket)$|^\.ci\/run$/

function* walk(root: string, folder = ''): Generator<string> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory() && !SKIPPED_FOLDERS.has(entry.name)) yield* walk(root, path)
    else if (entry.isFile()) yield path
  }
}

const keys = (value: unknown): string[] => (typeof value === 'object' && value !== null ? Object.keys(value) : [])

/** Reads the workspace below `root`. */
export function readTree(root: string): Tree {
  const texts = [...walk(root)]
    .filter((path) => TEXT.test(path) && path !== 'pnpm-lock.yaml')
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  const sources = texts
    .filter(({ path }) => path.endsWith('.ts'))
    .map(({ path, text }): SourceFile => ({ path, text, code: withoutComments(text), imports: importsOf(text) }))

  const folders = texts
    .map(({ path }) => /^(packages\/[^/]+|bench)\/package\.json$/.exec(path)?.[1])
    .filter((folder) => folder !== undefined)
  const packages = folders.map((folder): Package => {
    const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Record<string, unknown>
    const own = sources.filter(({ path }) => path.startsWith(`${folder}/`))
    // The benchmarks are programs without a folder of sources.
    const isSource = ({ path }: SourceFile): boolean =>
      folder === 'bench' ? !path.startsWith('bench/test/') : path.startsWith(`${folder}/src/`)
    return {
      room: folder.replace('packages/', ''),
      folder,
      name: String(manifest.name),
      isPrivate: manifest.private === true,
      dependencies: [...keys(manifest.dependencies), ...keys(manifest.optionalDependencies)],
      devDependencies: keys(manifest.devDependencies),
      subpaths: keys(manifest.exports),
      src: own.filter(isSource),
      other: own.filter((file) => !isSource(file))
    }
  })

  const rootManifest = join(root, 'package.json')
  const rootJson = existsSync(rootManifest)
    ? (JSON.parse(readFileSync(rootManifest, 'utf8')) as Record<string, unknown>)
    : {}
  return { packages, texts, rootDependencies: [...keys(rootJson.dependencies), ...keys(rootJson.devDependencies)] }
}
