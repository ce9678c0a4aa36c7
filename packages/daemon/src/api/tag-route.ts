import { withLease } from '@svc/cas'
import { isDigest, isName, isNamespace, isTag, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { sendJson } from '../http/envelope.ts'
import type { Library } from '../library/library.ts'
import { changeTag, type TagChange } from '../library/tags.ts'
import { parseJsonBody } from './json.ts'
import type { ApiRoute } from './route.ts'

/** How `svcd tag` reaches the daemon that holds the root. Not part of the API: both sides have the same version. */
export const TAG_PATH = '/svcd/tag'

export interface TagRequest extends TagChange {
  readonly root: string
}

export type TagDeps = Pick<Library, 'repos' | 'documents' | 'needed' | 'store'>

/** Lets the running daemon make the change, since only it may write the state of its root. */
export function tagRoute(root: string, { repos, documents, needed, store }: TagDeps): ApiRoute {
  const change = (bytes: Uint8Array): Promise<Sha256Digest> => {
    const body = parseJsonBody(bytes)
    const { ns, name, tag, index } = body as Readonly<Record<string, unknown>>
    if (body.root !== root)
      throw new DaemonError('E_BAD_REQUEST', `this daemon serves the root ${root}, not the one that you named`)
    if (typeof ns !== 'string' || !isNamespace(ns) || typeof name !== 'string' || !isName(name)) {
      throw new DaemonError('E_BAD_REQUEST', 'the fields "ns" and "name" must name a repository')
    }
    if (typeof tag !== 'string' || !isTag(tag)) throw new DaemonError('E_BAD_REQUEST', 'the field "tag" is not a tag')
    if (index !== null && index !== 'current' && !isDigest(index)) {
      throw new DaemonError('E_BAD_REQUEST', 'the field "index" must be a digest, "current" or null')
    }
    // protects the snapshot's content from a collection until the state names it
    return withLease(store, async (lease) => {
      if (index !== null && index !== 'current') for (const blob of await needed.blobsOfIndex(index)) lease.keep(blob)
      return changeTag({ ns, name, tag, index }, repos, documents)
    })
  }
  return {
    route: { method: 'POST', path: TAG_PATH },
    async answer({ body = new Uint8Array() }, response) {
      sendJson(response, 200, { digest: await change(body) })
    }
  }
}
