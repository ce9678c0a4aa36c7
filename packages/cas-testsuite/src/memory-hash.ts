import { hash } from 'node:crypto'
import { CasError, type HashAttachment, type HashResult, type StreamHasherFactory } from '@svc/cas'
import { digestFromHex } from '@svc/ref'

/** All hashes of bytes in memory. @throws CasError `E_ATTACHMENT` */
export async function hashOf(bytes: Uint8Array, attachments: readonly HashAttachment[] = []): Promise<HashResult> {
  const results: Record<string, Uint8Array> = {}
  for (const { name, module, options } of attachments) {
    try {
      const { default: make } = (await import(module)) as { readonly default: StreamHasherFactory }
      const hasher = make(options, bytes.length)
      hasher.update(bytes)
      results[name] = hasher.digest()
      for (const [key, result] of Object.entries(hasher.further?.() ?? {})) results[`${name}.${key}`] = result
    } catch (error) {
      throw new CasError('E_ATTACHMENT', `the attached hash "${name}" failed`, {}, error)
    }
  }
  return { digest: digestFromHex(hash('sha256', bytes, 'hex')), sizeBytes: bytes.length, attachments: results }
}

/** @throws CasError `E_SIZE_MISMATCH`, `E_DIGEST_MISMATCH` */
export function requireExpected(
  { digest, sizeBytes }: Pick<HashResult, 'digest' | 'sizeBytes'>,
  expected: { readonly digest?: HashResult['digest'] | undefined; readonly sizeBytes?: number | undefined }
): void {
  if (expected.sizeBytes !== undefined && sizeBytes !== expected.sizeBytes)
    throw new CasError(
      'E_SIZE_MISMATCH',
      `the source has ${sizeBytes} bytes instead of the announced ${expected.sizeBytes}`
    )
  if (expected.digest !== undefined && digest !== expected.digest)
    throw new CasError('E_DIGEST_MISMATCH', `the bytes have the digest ${digest}; expected ${expected.digest}`)
}

export const abortError = (signal?: AbortSignal): CasError =>
  new CasError('E_ABORTED', 'the operation was aborted by its caller', {}, signal?.reason)
