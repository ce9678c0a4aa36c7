import { ggufDefect } from './gguf-tensors.ts'
import { BEYOND, GgufWalker, hasMagic, MalformedGguf, readVersion } from './gguf-walker.ts'
import type { JsonFinding } from './inspect-json.ts'
import { templateFindings } from './inspect-template.ts'
import { JsonScanner } from './json-scan.ts'
import { looksLike } from './looks.ts'
import { readSafetensorsHeader } from './safetensors.ts'
import type { ReadAt } from './types.ts'

/** Few steps, since each is a request to a hub: vocabularies are in the header. */
const MAX_GGUF_MIB = 24
const GGUF_STEPS = [64 * 1024, 2 * 1024 * 1024, MAX_GGUF_MIB * 1024 * 1024]
/** The largest header of a model has some MB; loaders allow 100. */
const MAX_SAFETENSORS_BYTES = 8 * 1024 * 1024
const CHUNK_BYTES = 64 * 1024
const MAX_TEMPLATE_BYTES = 1024 * 1024
const MAX_FINDINGS = 50
const STRING = 8
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

const malformed = (what: string, key?: string): JsonFinding => ({
  runs: false,
  ...(key !== undefined && { key: JSON.stringify(key.slice(0, 80)).slice(1, -1) }),
  what
})

/** What is wrong with a GGUF, as far as its first 24 MiB tell (spec add.60). @throws only what `readAt` throws */
export async function inspectGguf(
  readAt: ReadAt,
  sizeBytes: number,
  inspect: (head: Uint8Array, sizeBytes: number) => HeadFindings | Promise<HeadFindings> = inspectGgufHead
): Promise<readonly JsonFinding[]> {
  for (let i = 0; ; i++) {
    const head = await readAt(0, Math.min(GGUF_STEPS[i]!, sizeBytes))
    const { findings, isOver } = await inspect(head, sizeBytes)
    if (isOver || head.length >= sizeBytes) return findings
    if (i === GGUF_STEPS.length - 1)
      return [...findings, malformed(`its header has more than ${MAX_GGUF_MIB} MiB, more than any model needs`)]
  }
}

/** What the start of a GGUF says; `isOver` if there is no more to learn from the rest. */
export interface HeadFindings {
  readonly findings: readonly JsonFinding[]
  readonly isOver: boolean
}

/** The check of one start of a GGUF, which takes a third of a second for 24 MiB. */
export function inspectGgufHead(head: Uint8Array, sizeBytes: number): HeadFindings {
  if (!hasMagic(head)) {
    const looks = looksLike(head, sizeBytes)
    return {
      findings: [malformed(`it is no GGUF${looks === undefined ? '' : `, but looks like ${looks}`}`)],
      isOver: true
    }
  }
  const { findings, isOver } = walkKeys(head, sizeBytes)
  const defect = findings.length > 0 && findings.at(-1)!.key === undefined ? undefined : ggufDefect(head, sizeBytes)
  if (defect === undefined) return { findings, isOver }
  return { findings: [...findings, malformed(defect)], isOver: true }
}

function walkKeys(head: Uint8Array, sizeBytes: number): HeadFindings {
  const findings: JsonFinding[] = []
  const walker = new GgufWalker(head, sizeBytes)
  try {
    readVersion(walker)
    const tensors = walker.count()
    for (let left = walker.count(); left > 0 && findings.length < MAX_FINDINGS; left--) inspectKey(walker, findings)
    for (let left = tensors; left > 0 && findings.length < MAX_FINDINGS; left--) {
      const name = walker.key()
      if (name === undefined || CONTROL.test(name))
        findings.push(malformed('the name of a tensor has control characters', name))
      for (let dimensions = Math.min(walker.u32(), 64); dimensions > 0; dimensions--) walker.count()
      walker.take(12)
    }
    return { findings, isOver: true }
  } catch (error) {
    if (error instanceof MalformedGguf) return { findings: [...findings, malformed(error.message)], isOver: true }
    if (error !== BEYOND) throw error
    return { findings, isOver: head.length >= sizeBytes }
  }
}

function inspectKey(walker: GgufWalker, findings: JsonFinding[]): void {
  const key = walker.key()
  const type = walker.u32()
  if (key === undefined || CONTROL.test(key)) findings.push(malformed('its name has control characters', key))
  if (type !== STRING || key?.startsWith('tokenizer.chat_template') !== true) {
    walker.value(type)
    return
  }
  const template = walker.text(MAX_TEMPLATE_BYTES)
  if (template === undefined) findings.push(malformed('a template that is no text, or has more than 1 MiB', key))
  else for (const what of templateFindings(template)) findings.push({ runs: true, key, what: `its template ${what}` })
}

/** What is wrong with a safetensors file, by its header (spec add.60). @throws only what `readAt` throws */
export async function inspectSafetensors(readAt: ReadAt, sizeBytes: number): Promise<readonly JsonFinding[]> {
  const head = await readAt(0, Math.min(sizeBytes, 8))
  const headerBytes = head.length < 8 ? 0 : Number(new DataView(head.buffer, head.byteOffset).getBigUint64(0, true))
  if (headerBytes > MAX_SAFETENSORS_BYTES && 8 + headerBytes <= sizeBytes)
    return [malformed(`its header has ${headerBytes} bytes, more than any model needs`)]
  const found = await readSafetensorsHeader(readAt, sizeBytes)
  if (found.format === 'unreadable') {
    const looks = found.looksLike === undefined ? '' : `; it looks like ${found.looksLike}`
    return [malformed(`${found.problem}${looks}`)]
  }
  const findings: JsonFinding[] = []
  const nothing = (): void => undefined
  const key = (text: string | undefined): void => {
    if (findings.length < MAX_FINDINGS && (text === undefined || CONTROL.test(text)))
      findings.push(
        malformed(text === undefined ? 'a key of more than 4 KiB' : 'its name has control characters', text)
      )
  }
  const events = {
    startObject: nothing,
    endObject: nothing,
    startArray: nothing,
    endArray: nothing,
    key,
    string: nothing,
    number: nothing,
    literal: nothing
  }
  const scanner = new JsonScanner(events, { maxDepth: 32, maxTextBytes: 4096 })
  for (let at = 8; at < 8 + headerBytes; at += CHUNK_BYTES)
    scanner.push(await readAt(at, Math.min(CHUNK_BYTES, 8 + headerBytes - at)))
  return findings
}
