// Small made houses: each test of a rule builds one, with a fault in it.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Path to content; an object is written as JSON. */
export type Files = Readonly<Record<string, string | object>>

export interface House extends Disposable {
  readonly root: string
}

/** Writes `files` into a new folder, and links each package of ours into `node_modules`, as an installation does. */
export function buildHouse(files: Files): House {
  const root = mkdtempSync(join(tmpdir(), 'svc-house-'))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), typeof content === 'string' ? content : JSON.stringify(content))
    const { name } = (path.endsWith('/package.json') ? content : {}) as { name?: string }
    if (!path.startsWith('packages/') || name === undefined) continue
    mkdirSync(dirname(join(root, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, dirname(path)), join(root, 'node_modules', name))
  }
  return { root, [Symbol.dispose]: () => rmSync(root, { recursive: true }) }
}
