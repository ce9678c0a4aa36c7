import { hash } from 'node:crypto'
import type { DiskBlobStore } from '@svc/cas'
import { MAX_MODEL_CONFIG_BYTES, type Manifest, parseModelConfig } from '@svc/manifest'
import { digestFromHex } from '@svc/ref'
import { LibraryError } from './library-error.ts'
import { readSmallBlob } from './small-blob.ts'

/**
 * The text of the upstream `config.json`; undefined where there was none.
 * @throws LibraryError `E_NOT_FOUND` without the blob, `E_CORRUPTION` for other bytes
 */
export async function upstreamConfigOf(
  { files }: Pick<Manifest, 'files'>,
  store: Pick<DiskBlobStore, 'stat' | 'open'>
): Promise<string | undefined> {
  const config = files.find(({ kind }) => kind === 'config')
  if (config === undefined) return undefined
  const bytes = await readSmallBlob(store, config.digest, MAX_MODEL_CONFIG_BYTES)
  if (bytes === undefined) throw missingBlobsError([config.digest])
  if (digestFromHex(hash('sha256', bytes)) !== config.digest)
    throw new LibraryError(
      'E_CORRUPTION',
      `the model config ${config.digest} does not match its digest; verify the store`
    )
  return parseModelConfig(bytes).upstream
}

/** The refusal of work that needs absent blobs. */
export const missingBlobsError = (digests: readonly string[]): LibraryError =>
  new LibraryError('E_NOT_FOUND', `${digests.length} of the model's blobs are not here; make it complete first`, {
    candidates: digests
  })
