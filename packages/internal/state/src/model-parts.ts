import { defectOfName } from '@svc/manifest'

/** No program loads a list of more parts. */
const MAX_PARTS = 64

/** The folders of a model's parts, from the lists of sentence-transformers and diffusers; none if the file is no such list. */
export function partsIn(bytes: Uint8Array): readonly string[] {
  let list: unknown
  try {
    list = JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    return []
  }
  const parts = Array.isArray(list) ? list.map(moduleFolder) : Object.entries(list ?? {}).map(componentFolder)
  const folders = parts.filter((part): part is string => typeof part === 'string' && defectOfName(part) === undefined)
  return [...new Set(folders)].slice(0, MAX_PARTS)
}

/** A module that only normalizes has no files. */
const moduleFolder = (entry: { readonly path?: unknown; readonly type?: unknown } | null): unknown =>
  typeof entry?.type === 'string' && entry.type.endsWith('.Normalize') ? undefined : entry?.path

/** A pipeline lists a component that it goes without as nulls. */
const componentFolder = ([name, value]: [string, unknown]): unknown =>
  Array.isArray(value) && value.every((each) => typeof each === 'string') ? name : undefined
