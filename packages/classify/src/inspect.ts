import { compareText } from '@svc/ref'
import { type JsonFinding, JsonInspection, MAX_JSON_BYTES } from './inspect-json.ts'
import { templateFindings } from './inspect-template.ts'
import { inspectGguf, inspectSafetensors } from './inspect-weights.ts'
import { baseOf, nameProblem } from './names.ts'
import { isPickle, isPickleByName, PICKLE_START_BYTES } from './pickles.ts'
import type { ListedFile, ReadAt } from './types.ts'

/** Something in a model that would run code, or that is malformed (spec add.60). */
export interface ModelFinding {
  readonly file: string
  /** Of a configuration or a header, with the keys above it. */
  readonly key?: string
  readonly is: 'runs-code' | 'malformed'
  /** For people, e.g. `loads classes from Python files`. */
  readonly what: string
}

/** The checks of what may take long, perhaps in a thread. */
export interface InspectThreads {
  /** As `inspectGgufHead`. */
  readonly head?: Parameters<typeof inspectGguf>[2]
  /** As {@link inspectText}. */
  readonly text?: (name: string, bytes: Uint8Array) => readonly JsonFinding[] | Promise<readonly JsonFinding[]>
}

/** What {@link inspectFiles} found, and what it could not look at. */
export interface Inspection {
  /** By file. */
  readonly findings: readonly ModelFinding[]
  /** Files whose content was not read: the bound of all bytes was reached, or their source does not give them. */
  readonly unread: readonly string[]
}

/** Of all files of a kind together: what is checked is small. */
const MAX_BYTES = { headers: 32 * 1024 * 1024, texts: MAX_JSON_BYTES }
const MAX_FINDINGS = 500
const CHUNK_BYTES = 64 * 1024
const MAX_TEMPLATE_BYTES = 1024 * 1024

/** Vocabularies: large, and no loader takes code or files from them. */
const VOCABULARY = /^(?:tokenizer|vocab|tekken|added_tokens|vocabulary|(?:shared|source|target)_vocabulary)\.json$/
const JSON_NAME = /\.json$/i
const WEIGHTS = /\.(?:gguf|safetensors)$/i
const TEMPLATE = /^chat_template(?:\.jinja2?)?$|\.jinja2?$/
const NATIVE = /\.(?:so(?:\.[\d.]+)?|dll|dylib|exe|llamafile|wasm|node)$/i
/** Formats whose start is known not to be a pickle's, or that nothing loads. */
const HARMLESS = /\.(?:md|txt|png|jpe?g|gif|webp|svg|wav|mp3|mp4|csv|yaml|yml|toml|html|pdf|onnx)$/i

/**
 * What would run code when a model is loaded, and what is malformed, by file and key. Nothing is executed, and little is read:
 * headers, configurations and templates, at most 48 MiB in all. What a header does not show is not found.
 * @param readOf random access to a file; undefined for one that cannot be read
 * @param threads where long texts and headers are looked at; default: here
 * @throws only what `readOf` and its readers throw
 */
export async function inspectFiles(
  files: readonly ListedFile[],
  readOf: (name: string) => ReadAt | undefined,
  threads: InspectThreads = {}
): Promise<Inspection> {
  const findings: ModelFinding[] = []
  const unread: string[] = []
  const leftBytes = { ...MAX_BYTES }
  const inOrder = files.toSorted((a, b) => rankOf(a.name) - rankOf(b.name) || compareText(a.name, b.name))
  for (const file of inOrder) {
    const { name, sizeBytes } = file
    const say = ({ runs, key, what }: JsonFinding): void => {
      if (findings.length < MAX_FINDINGS)
        findings.push({ file: name, ...(key !== undefined && { key }), is: runs ? 'runs-code' : 'malformed', what })
    }
    for (const found of byName(name)) say(found)
    const check = checkOf(name, threads)
    if (check === undefined || sizeBytes === 0 || isPickleByName(name)) continue
    const read = readOf(name)
    const kind = WEIGHTS.test(name) ? 'headers' : 'texts'
    // a larger one is malformed, and not read
    const needsBytes = JSON_NAME.test(name) && sizeBytes <= MAX_JSON_BYTES ? sizeBytes : 1
    if (read === undefined || leftBytes[kind] < needsBytes) {
      unread.push(name)
      continue
    }
    const counted: ReadAt = async (offset, lengthBytes) => {
      const bytes = await read(offset, lengthBytes)
      leftBytes[kind] -= bytes.length
      return bytes
    }
    for (const found of await check(counted, file)) say(found)
  }
  return { findings: findings.sort((a, b) => compareText(a.file, b.file)), unread }
}

const rankOf = (name: string): number => (JSON_NAME.test(name) ? 0 : WEIGHTS.test(name) ? 2 : 1)

function byName(name: string): JsonFinding[] {
  const problem = nameProblem(name)
  return [
    ...(problem === undefined ? [] : [{ runs: false, what: `its path is refused: ${problem}` }]),
    ...(/\.py$/i.test(name) ? [{ runs: true, what: 'is Python, which loaders run where they are told to' }] : []),
    ...(NATIVE.test(name) ? [{ runs: true, what: 'is native code' }] : []),
    ...(isPickleByName(name) ? [PICKLE] : [])
  ]
}

const PICKLE: JsonFinding = { runs: true, what: 'is a pickle, which runs code when it is loaded' }

type FileCheck = (readAt: ReadAt, file: ListedFile) => Promise<readonly JsonFinding[]>

function checkOf(name: string, { head, text = inspectText }: InspectThreads): FileCheck | undefined {
  const base = baseOf(name)
  if (/\.gguf$/i.test(base)) return (readAt, { sizeBytes }) => inspectGguf(readAt, sizeBytes, head)
  if (/\.safetensors$/i.test(base)) return (readAt, { sizeBytes }) => inspectSafetensors(readAt, sizeBytes)
  if (TEMPLATE.test(base)) return wholeText(MAX_TEMPLATE_BYTES, 'a template', text)
  if (JSON_NAME.test(base))
    return VOCABULARY.test(base) ? undefined : wholeText(MAX_JSON_BYTES, 'a configuration', text)
  if (/\.py$/i.test(base) || NATIVE.test(base) || HARMLESS.test(base)) return undefined
  return async (readAt, { sizeBytes }) =>
    isPickle(name, await readAt(0, Math.min(sizeBytes, PICKLE_START_BYTES))) ? [PICKLE] : []
}

const wholeText =
  (maxBytes: number, what: string, inspect: NonNullable<InspectThreads['text']>): FileCheck =>
  async (readAt, { name, sizeBytes }) => {
    if (sizeBytes > maxBytes) return [{ runs: false, what: `${what} of ${sizeBytes} bytes` }]
    const chunks: Uint8Array[] = []
    for (let at = 0; at < sizeBytes; ) {
      const chunk = await readAt(at, Math.min(CHUNK_BYTES, sizeBytes - at))
      if (chunk.length === 0) break
      chunks.push(chunk)
      at += chunk.length
    }
    return inspect(name, joined(chunks))
  }

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

/** The check of a configuration or a template. 16 MiB take most of a second. */
export function inspectText(name: string, bytes: Uint8Array): readonly JsonFinding[] {
  if (TEMPLATE.test(baseOf(name)))
    return templateFindings(new TextDecoder().decode(bytes)).map((what) => ({ runs: true, what }))
  const inspection = new JsonInspection(name)
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
    if (!inspection.push(bytes.subarray(at, at + CHUNK_BYTES))) return inspection.findings
  inspection.end()
  return inspection.findings
}
