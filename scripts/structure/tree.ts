import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface TextFile {
  /** From the repository's root, with forward slashes. */
  readonly path: string
  readonly text: string
}

const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', '.git', '.turbo', 'coverage'])
const TEXT = /\.(?:tsx?|[cm]?js|json|md|ya?ml|toml|sh|py|service|socket)$|^(?:\.ci\/run|bin\/[^.]+)$/

function* walk(root: string, folder = ''): Generator<string> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory() && !SKIPPED_FOLDERS.has(entry.name)) yield* walk(root, path)
    else if (entry.isFile()) yield path
  }
}

/** All text files of the repository at `root`, in a stable order. */
export const readTree = (root: string): TextFile[] =>
  [...walk(root)]
    .filter((path) => TEXT.test(path) && path !== 'pnpm-lock.yaml')
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
