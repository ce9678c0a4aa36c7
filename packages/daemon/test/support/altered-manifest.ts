import { type Companions, canonicalBytes, type Manifest } from '@svc/manifest'
import { sha256 } from '@svc/metainfo'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { commitArtifacts } from '../../../library/src/import/commit.ts'
import { writeDocument } from '../../../library/src/import/seal.ts'
import type { TestDaemon } from './daemon.ts'

/**
 * Stores a manifest of anybody under `ns/name`: that of an import here with other annotations, whatever these are.
 * Its companions are those of the import, or what `alter` makes of these.
 */
export async function storeAltered(
  daemon: TestDaemon,
  like: string,
  as: string,
  annotations: Readonly<Record<string, string>>,
  alter?: (companions: Companions) => Companions
): Promise<Sha256Digest> {
  const { context } = daemon.running
  const { body } = await daemon.resolve(like)
  const before = await context.documents.requireManifest(body.manifestDigest)
  const document: Manifest = { ...before, annotations: { ...before.annotations, ...annotations } }
  const bytes = canonicalBytes(document)
  const digest = digestFromBytes(sha256(bytes))
  await writeDocument(context.store, { document, bytes, digest })
  const index = await context.documents.index(body.indexDigest)
  const member = index.members.find(({ manifest }) => manifest === body.manifestDigest)!
  const { source, companions = {} } = (await context.artifacts.read(body.manifestDigest))!
  const [ns, name] = as.split('/') as [string, string]
  let beside = companions[`${body.ns}/${body.name}`]
  if (alter !== undefined) {
    const bytes = canonicalBytes(alter((await context.documents.companions(beside!))!))
    beside = digestFromBytes(sha256(bytes))
    await writeDocument(context.store, { document: undefined, bytes, digest: beside })
  }
  await commitArtifacts(
    { ns, name },
    [{ member: { ...member, manifest: digest }, manifest: { document, bytes, digest } }],
    {
      origin: source,
      follows: undefined,
      provenanceOf: () => ({ access: 'public' }),
      companions: beside
    },
    context
  )
  return digest
}
