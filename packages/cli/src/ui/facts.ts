import type { Client } from '@svc/client'
import { textOf } from '@svc/internal-bridge'
import { documentBytes, jsonDocument, readManifestBlob } from '../models/documents.ts'
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
  return {
    ...(await modelFacts(client, files)),
    license: annotations['svc.license'],
    files: files.map(({ name, kind, role, size }) => ({ name, kind, role, sizeBytes: size })),
    card: member?.companions && (await cardOf(client, member.companions).catch(() => undefined))
  }
}

/** The text of the README among the companions, without its metadata. */
async function cardOf(client: Client, companions: string): Promise<string | undefined> {
  const { files } = (await jsonDocument(client, companions)) as {
    readonly files: readonly { readonly path: string; readonly digest: string }[]
  }
  const readme = files.find(({ path }) => /^readme\.md$/i.test(path))
  if (readme === undefined) return undefined
  const text = (await documentBytes(client, readme.digest)).toString('utf8')
  return text.replace(/^---\r?\n[\s\S]*?\n---\r?\n/, '').trim()
}
