import { dirname } from 'node:path'
import { componentOf } from './component.ts'
import { ViewError } from './errors.ts'
import type { View, ViewFile } from './view.ts'

/** A path to pass to a runtime. */
export interface RuntimePath {
  readonly is: 'file' | 'folder'
  /** Absolute. Do not resolve it: behind its links the file has another name, and its shards are not next to it. */
  readonly path: string
}

const SHARD = /^(.*?)[-_]\d{5,6}[-_]of[-_](\d{5,6})(\.[^.]+)$/

/**
 * The path for a runtime to load. Without a fragment: the only GGUF, the first shard of a split one, a LoRA that is a GGUF
 * and alone, the only file that was
 * taken as it is, or else the folder (the adapter's if there is only an adapter). With a fragment: the file with that name, or the only one whose path ends
 * with it, or, for `mmproj` and `draft`, that is the projector or the draft head, or that is
 * the component of that word (`vae`), or whose base name starts with it (the artifact's
 * own files before its companions), e.g. `model-q8_0.gguf`, `tokenizer.json`; for the shards of one model, the first.
 * @throws ViewError `E_NO_MATCH` and `E_AMBIGUOUS` with the names as `details.candidates`; `E_INCOMPLETE` when the
 *   first shard is missing.
 */
export function runtimePath(view: Pick<View, 'folder' | 'files'>, fragment?: string): RuntimePath {
  if (fragment !== undefined) return { is: 'file', path: only(matching(view.files, fragment), view.files, fragment) }
  const ggufs = view.files.filter(({ kind }) => kind === 'weights.gguf')
  if (ggufs.length > 0) return { is: 'file', path: only(ggufs, ggufs) }
  const opaque = view.files.filter(({ kind }) => kind === 'opaque')
  if (opaque.length === 1) return { is: 'file', path: opaque[0]!.path }
  const others = view.files.filter(({ kind }) => kind === 'weights.safetensors')
  const loras = view.files.filter(({ role, name }) => role === 'adapter' && name.endsWith('.gguf'))
  if (others.length === 0 && loras.length > 0) return { is: 'file', path: only(loras, loras) }
  const adapters = new Set(view.files.filter(({ kind }) => kind === 'adapter').map(({ path }) => dirname(path)))
  const [folder] = adapters
  return { is: 'folder', path: others.length === 0 && adapters.size === 1 ? folder! : view.folder }
}

/** Fragments that name a file by its role. */
const ROLES: Readonly<Record<string, string>> = { mmproj: 'vision-projector', draft: 'draft' }

const baseOf = (name: string): string => name.slice(name.lastIndexOf('/') + 1)

function matching(files: readonly ViewFile[], fragment: string): readonly ViewFile[] {
  const rules: ((file: ViewFile) => boolean)[] = [
    ({ name }) => name === fragment,
    ({ name }) => name.endsWith(`/${fragment}`),
    ({ role }) => role !== undefined && role === ROLES[fragment],
    (file) => componentOf(file) === fragment,
    ({ name }) => baseOf(name).startsWith(fragment)
  ]
  for (const rule of fragment === '' ? [] : rules) {
    const found = files.filter(rule)
    const own = found.filter(({ kind }) => kind !== 'companion')
    if (found.length > 0) return own.length > 0 ? own : found
  }
  return []
}

/** The only file, or the first of the only set of shards. */
function only(found: readonly ViewFile[], all: readonly ViewFile[], fragment = ''): string {
  const sets = Map.groupBy(found, ({ name, part }) => {
    const shard = part === undefined ? null : SHARD.exec(name)
    return shard === null ? name : `${shard[1]}-of-${Number(shard[2])}${shard[3]}`
  })
  const firsts = [...sets.values()].map((set) => set.toSorted((a, b) => (a.part ?? 0) - (b.part ?? 0))[0]!)
  const [first, second] = firsts
  const candidates = (firsts.length > 0 ? firsts : all).map(({ name }) => name)
  if (first === undefined) {
    const message = `the model has no file named ${JSON.stringify(fragment)}`
    throw new ViewError('E_NO_MATCH', message, { name: fragment, candidates })
  }
  if (second !== undefined) {
    const message = 'several files match; name one of them'
    throw new ViewError('E_AMBIGUOUS', message, { name: fragment, candidates })
  }
  // a shard that was requested by its own name is returned as it is.
  if ((first.part ?? 1) > 1 && first.name !== fragment && baseOf(first.name) !== fragment) {
    const message = `the first shard of ${first.name} is missing; runtimes start from it`
    throw new ViewError('E_INCOMPLETE', message, { name: first.name })
  }
  return first.path
}
