import { createReadStream } from 'node:fs'
import type { BlobSlice } from '@svc/client'
import { tryParseTypedDigest } from '@svc/ref'
import { CliError, usage } from '../errors.ts'
import { isWeights, namedFiles } from '../models/model-facts.ts'
import { canonicalRef, shortRef } from '../models/reference.ts'
import { madeView, splitTarget } from '../models/runtime-view.ts'
import type { Session } from '../session.ts'

/** `svc cat REF[#name]|DIGEST [--range START-END]`: bytes on stdout. */
export async function cat(session: Session, target: string, options: { readonly range?: string }): Promise<void> {
  const { stdout } = session.terminal
  const found = await bytesOf(session, target)
  if (stdout.isTerminal && found.isBinary) {
    throw usage('the file is binary, and stdout is a terminal', `svc cat '${target}' > FILE`)
  }
  const { client } = session
  const slice = await sliceOf(
    async () => (found.path === undefined ? (await client.headBlob(found.digest)).sizeBytes : found.sizeBytes),
    options.range
  )
  if (found.path === undefined) {
    const { body } = await client.readBlob(found.digest, slice)
    return stdout.bytes(body)
  }
  const { start = 0, end = found.sizeBytes } = slice
  // an empty file has no last byte
  if (end > start) await stdout.bytes(createReadStream(found.path, { start, end: end - 1 }))
}

/** A blob, or a file that the view of a model unpacks. */
type FoundBytes =
  | { readonly digest: string; readonly isBinary: boolean; readonly path?: undefined }
  | { readonly path: string; readonly sizeBytes: number; readonly isBinary: boolean }

async function bytesOf(session: Session, target: string): Promise<FoundBytes> {
  const digest = tryParseTypedDigest(target)
  if (digest !== undefined) return { digest, isBinary: false }
  const { ref: asked, file: wanted } = splitTarget(target)
  const result = await session.client.open(await canonicalRef(session, asked))
  if (wanted === 'manifest') return { digest: result.manifestDigest, isBinary: false }
  const files = namedFiles(result)
  const found = wanted === undefined ? files.filter(isWeights) : files.filter((file) => file.name === wanted)
  if (found.length === 1) return { digest: found[0]!.digest, isBinary: isWeights(found[0]!) }
  const companions = result.companions?.files ?? []
  const companion = companions.find(({ path }) => path === wanted)
  if (companion !== undefined) return { digest: companion.digest, isBinary: false }
  const unpacked = wanted === undefined || result.missing !== undefined ? undefined : await madeView(session, asked)
  const member = unpacked?.files.find(({ name }) => name === wanted)
  if (member !== undefined) return { path: member.path, sizeBytes: member.size, isBinary: false }
  const ref = shortRef(result.ref)
  const names = [...files.map(({ name }) => name), ...companions.map(({ path }) => path)]
  throw new CliError(
    wanted === undefined && found.length > 1 ? 'usage' : 'notFound',
    wanted === undefined
      ? `${ref} has ${found.length} weights files here; name one: ${ref}#<name>`
      : `${ref} has no file ${wanted} here`,
    { code: 'E_NOT_FOUND', candidates: [...names.map((name) => `${ref}#${name}`), `${ref}#manifest`] }
  )
}

const RANGE = /^(\d*)-(\d*)$/

/** `0-99` (inclusive, as HTTP), `100-`, `-16`. */
async function sliceOf(sizeOf: () => Promise<number>, range: string | undefined): Promise<BlobSlice> {
  if (range === undefined) return {}
  const match = RANGE.exec(range)
  const [first, last] = [match?.[1] ?? '', match?.[2] ?? '']
  if (first === '' && last === '') throw usage(`"${range}" is not a range`, 'write --range 0-99, 100- or -16')
  if (first === '') return { start: Math.max(0, (await sizeOf()) - Number(last)) }
  return { start: Number(first), ...(last !== '' && { end: Number(last) + 1 }) }
}
