import type { BlobStore } from '@svc/cas'
import { isPickle, isPickleByName, PICKLE_START_BYTES, refusePickles } from '@svc/classify'
import { LibraryError } from '@svc/library/parts'
import type { Manifest } from '@svc/manifest'

/** Files may be such as no row recognizes, pickles only if the owner says so (spec rec.32). */
export interface OpaqueFiles {
  readonly allowsPickles: boolean
}

/** @throws LibraryError, ClassifyError `E_NOT_IMPORTABLE` for files that are no model's without their owner's word */
export function requireAllowed({ files }: Manifest, opaque: OpaqueFiles | undefined): void {
  const names = files.filter(({ kind }) => kind === 'opaque').map(({ name }) => name)
  if (names.length === 0) return
  if (opaque === undefined) {
    const what = `the artifact has files that are imported as they are, such as ${JSON.stringify(names[0])}`
    throw new LibraryError('E_NOT_IMPORTABLE', `${what}; "recognise": "opaque" allows them`, { candidates: ['opaque'] })
  }
  if (!opaque.allowsPickles) refusePickles(names.filter(isPickleByName))
}

/** The same, once the bytes are here. */
export async function requireNoPickles(
  { files }: Manifest,
  opaque: OpaqueFiles | undefined,
  store: Pick<BlobStore, 'open'>
): Promise<void> {
  if (opaque?.allowsPickles === true) return
  for (const { kind, name, digest, size } of files) {
    if (kind !== 'opaque') continue
    const reader = await store.open(digest)
    try {
      const start = new Uint8Array(Math.min(size, PICKLE_START_BYTES))
      const count = await reader.read(start, 0)
      if (isPickle(name, start.subarray(0, count))) refusePickles([name])
    } finally {
      await reader.close()
    }
  }
}
