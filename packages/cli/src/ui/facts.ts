import type { Client } from '@svc/client'
import { textOf } from '@svc/internal-bridge'
import { inspectedLine } from '../commands/inspect.ts'
import { blobReader, documentBytes, jsonDocument, readManifestBlob } from '../models/documents.ts'
import { modelFacts } from '../models/model-facts.ts'
import { membersOf } from '../models/models-here.ts'
import { canonicalRef } from '../models/reference.ts'
import type { PageRoute } from './page-route.ts'

/** What a model is, from its documents and headers. Nothing is opened, which would be a use of it. */
export const facts: PageRoute = async ({ session, query }) => {
  const { client } = session
  const { manifestDigest } = await client.resolve(await canonicalRef(session, textOf(query.get('ref'))))
  const { files = [], annotations = {} } = await readManifestBlob(client, manifestDigest)
  const member = membersOf(await client.models()).find(({ manifest }) => manifest === manifestDigest)
  const beside = member?.companions === undefined ? [] : await companionsIn(client, member.companions).catch(() => [])
  const looked = [...files, ...beside.map(({ path, ...rest }) => ({ name: path, ...rest }))]
  return {
    ...(await modelFacts(client, files)),
    // what is not here cannot be looked into
    caution: await inspectedLine(
      looked.map(({ name, size, digest }) => ({ name, sizeBytes: size, readAt: blobReader(client, digest) }))
    ).catch(() => undefined),
    license: annotations['svc.license'],
    files: files.map(({ name, kind, role, size }) => ({ name, kind, role, sizeBytes: size })),
    card: await cardOf(client, beside).catch(() => undefined)
  }
}

interface Companion {
  readonly path: string
  readonly digest: string
  readonly size: number
}

const companionsIn = async (client: Client, digest: string): Promise<readonly Companion[]> =>
  ((await jsonDocument(client, digest)) as { readonly files: readonly Companion[] }).files

/** The text of the README among the companions, without its metadata. */
async function cardOf(client: Client, companions: readonly Companion[]): Promise<string | undefined> {
  const readme = companions.find(({ path }) => /^readme\.md$/i.test(path))
  if (readme === undefined) return undefined
  const text = (await documentBytes(client, readme.digest)).toString('utf8')
  return text.replace(/^---\r?\n[\s\S]*?\n---\r?\n/, '').trim()
}
