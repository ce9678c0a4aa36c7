import { createHash } from 'node:crypto'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Writes a file below `root`, its folders too. */
export function put(root: string, at: string, content: string | Uint8Array | object): void {
  mkdirSync(dirname(join(root, at)), { recursive: true })
  const isBytes = typeof content === 'string' || content instanceof Uint8Array
  writeFileSync(join(root, at), isBytes ? content : JSON.stringify(content))
}

export function link(root: string, at: string, target: string): void {
  mkdirSync(dirname(join(root, at)), { recursive: true })
  symlinkSync(target, join(root, at))
}

/** A model's names, which are the same in every run. */
export const namesOf = (model: { readonly files: readonly { readonly name: string }[] } | undefined): string[] =>
  model?.files.map(({ name }) => name) ?? []
