import { pipeline } from 'node:stream/promises'
import type { BlobSlice } from '@svc/client'
import { CliError, usage } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { asDigest, canonicalRef, shortRef } from '../reference.ts'
import type { Session } from '../session.ts'
import { isWeights, namedFiles } from './model.ts'

/** `svc cat REF[#name]|DIGEST [--range START-END]`: bytes on stdout. */
export async function cat(session: Session, target: string, options: { readonly range?: string }): Promise<void> {
  const { stdout } = session.terminal
  const blob = await blobOf(session, target)
  if (stdout.isTTY === true && blob.binary) {
    throw usage('that is binary, and stdout is a terminal', `svc cat '${target}' > FILE`)
  }
  const slice = await sliceOf(session, blob.digest, options.range)
  const { body } = await session.client.readBlob(blob.digest, slice)
  await pipeline(body, stdout, { end: false })
}

async function blobOf(session: Session, target: string): Promise<{ digest: string; binary: boolean }> {
  const digest = asDigest(target)
  if (digest !== undefined) return { digest, binary: false }
  const hash = target.indexOf('#')
  const wanted = hash < 0 ? undefined : target.slice(hash + 1)
  const result = await session.client.open(await canonicalRef(session, hash < 0 ? target : target.slice(0, hash)))
  if (wanted === 'manifest') return { digest: result.manifestDigest, binary: false }
  const files = namedFiles(result)
  const found = wanted === undefined ? files.filter(isWeights) : files.filter((file) => file.name === wanted)
  if (found.length === 1) return { digest: found[0]!.digest, binary: isWeights(found[0]!) }
  const ref = shortRef(result.ref)
  throw new CliError(
    wanted === undefined && found.length > 1 ? EXIT.usage : EXIT.notFound,
    wanted === undefined
      ? `${ref} has ${found.length} weights files here; name one: ${ref}#<name>`
      : `${ref} has no file ${wanted} here`,
    { code: 'E_NOT_FOUND', candidates: [...files.map((file) => `${ref}#${file.name}`), `${ref}#manifest`] }
  )
}

const RANGE = /^(\d*)-(\d*)$/

/** `0-99` (inclusive, as HTTP), `100-`, `-16`. */
async function sliceOf(session: Session, digest: string, range: string | undefined): Promise<BlobSlice> {
  if (range === undefined) return {}
  const match = RANGE.exec(range)
  const [first, last] = [match?.[1] ?? '', match?.[2] ?? '']
  if (first === '' && last === '') throw usage(`"${range}" is no range`, 'write --range 0-99, 100- or -16')
  if (first === '') {
    const { sizeBytes } = await session.client.headBlob(digest)
    return { start: Math.max(0, sizeBytes - Number(last)) }
  }
  return { start: Number(first), ...(last !== '' && { end: Number(last) + 1 }) }
}
