import type { EvictBody, Job } from '@svc/client/protocol'
import type { Evictions, Library } from '@svc/library/parts'
import type { JobRegistry } from './registry.ts'

export interface EvictJobDeps extends Pick<Library, 'resolver'> {
  readonly jobs: JobRegistry
  readonly evictions: Pick<Evictions, 'evict'>
}

/** POST /v1/evict. @throws as `Resolver.resolve`; DaemonError `E_NOT_FOUND` */
export async function startEviction({ ref, force = false }: EvictBody, deps: EvictJobDeps): Promise<Job> {
  const { resolver, jobs, evictions } = deps
  const { ref: canonical, manifestDigest: manifest } = await resolver.resolveHere(ref)
  return jobs.start({ kind: 'evict', ref: canonical, manifest }, async ({ id, signal }) => {
    const freed = await evictions.evict(manifest, { force, signal, workId: id })
    return { result: { ...freed, evicted: [manifest] } }
  })
}
