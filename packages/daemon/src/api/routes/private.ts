import { ROUTES } from '@svc/client/protocol'
import type { Sha256Digest } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import type { Artifacts } from '../../library/artifacts.ts'
import type { Documents } from '../../library/documents.ts'
import { digestsOf } from '../../library/open.ts'
import type { Resolver } from '../../library/resolve.ts'
import { defineRoute } from '../route.ts'

export interface PrivateDeps {
  readonly resolver: Resolver
  readonly documents: Documents
  readonly artifacts: Artifacts
  /**
   * Called after each change and before the response, so that listeners and swarms stop serving the artifact, or may
   * start.
   */
  readonly onWithheld: (manifestDigest: Sha256Digest) => Promise<void>
}

export const privateRoute = ({ resolver, documents, artifacts, onWithheld }: PrivateDeps) =>
  defineRoute(ROUTES.setPrivate, async ({ body }) => {
    const resolved = await resolver.resolve(body.ref)
    const [manifestDigest] = digestsOf(resolved)
    if ((await documents.manifest(manifestDigest)) === undefined)
      throw new DaemonError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
    await artifacts.setPrivate(manifestDigest, body.private)
    await onWithheld(manifestDigest)
    return { ref: resolved.ref, manifestDigest, private: body.private }
  })
