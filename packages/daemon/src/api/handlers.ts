import { type BlobReader, CasError } from '@svc/cas'
import {
  EnsureBodySchema,
  ImportBtBodySchema,
  ImportCatalogBodySchema,
  ImportHfBodySchema,
  ImportLocalBodySchema,
  type Job,
  VerifyBodySchema
} from '@svc/client/protocol'
import {
  digestFromHex,
  isReservedNamespace,
  parseRepoId,
  RefError,
  type RepoId,
  type Sha256Digest,
  tryParseDigest
} from '@svc/ref'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TObject } from 'typebox'
import { DaemonError } from '../errors.ts'
import { ensure } from '../jobs/ensure.ts'
import { verify } from '../jobs/verify.ts'
import { inventory } from '../library/models.ts'
import { digestsOf, openRef } from '../library/open.ts'
import type { CatalogPart, DaemonContext, HubPart, SwarmPart } from '../parts.ts'
import { localSource } from '../sources/local/source.ts'
import { type Handlers, sendJson, sendJsonText } from './app.ts'
import { BufferPool, sendBlob } from './blob-response.ts'
import { readBody } from './body.ts'
import { envelope, toWireError } from './envelope.ts'
import { requiredParameter } from './query.ts'
import { statusOf } from './status.ts'

export interface LiveParts {
  readonly swarm: SwarmPart | undefined
  readonly hub: HubPart | undefined
  readonly catalog: CatalogPart | undefined
}

/** What each route does: reads the request, asks the part that knows, sends the answer. */
export function createHandlers(context: DaemonContext, parts: LiveParts, startedAt: string): Handlers {
  const { resolver, store, documents, repos, artifacts, jobs, importer, config, log } = context
  const pool = new BufferPool()

  const bodyOf = <S extends TObject>(schema: S, request: FastifyRequest): Static<S> => {
    const { body, unknown } = readBody(schema, request.body as Uint8Array | undefined)
    if (unknown.length > 0)
      log.info(
        { path: request.url, fields: unknown.slice(0, 20).map((name) => name.slice(0, 100)) },
        'unknown fields ignored'
      )
    return body
  }
  const accepted = (reply: FastifyReply, job: Job): void => sendJson(reply, 201, job)
  const texts = new WeakMap<object, string>()
  const resolve = (request: FastifyRequest, reply: FastifyReply): unknown => {
    const ref = requiredParameter(request.raw.url ?? '', 'ref')
    let hit
    try {
      hit = resolver.cached(ref)
    } catch (error) {
      // errors of the grammar gain candidates on the slow way
      if (!(error instanceof RefError)) throw error
    }
    if (hit !== undefined) {
      let text = texts.get(hit)
      if (text === undefined) texts.set(hit, (text = JSON.stringify(hit)))
      return sendJsonText(reply, 200, text)
    }
    return resolver.resolve(ref).then((result) => (sendJson(reply, 200, result), reply))
  }

  const blob = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const digest = blobDigest((request.params as { digest: string }).digest)
    let reader: BlobReader
    try {
      reader = await store.open(digest)
    } catch (error) {
      if (!(error instanceof CasError) || error.code !== 'E_NOT_FOUND') throw error
      throw new DaemonError('E_NOT_FOUND', `there is no blob ${digest}`, { cause: error })
    }
    reply.hijack()
    try {
      await sendBlob(request.raw, reply.raw, reader, {
        pool,
        refuse: (status, headers) => {
          const body = JSON.stringify(
            status === 416
              ? envelope(
                  'E_RANGE_INVALID',
                  `no part of the blob's ${reader.sizeBytes} bytes is asked for by: ${String(request.headers.range).slice(0, 200)}`
                )
              : envelope('E_PRECONDITION_FAILED', 'If-Match names another blob')
          )
          reply.raw.writeHead(status, {
            ...headers,
            'Content-Type': 'application/json; charset=utf-8',
            'Content-Length': Buffer.byteLength(body)
          })
          reply.raw.end(request.method === 'HEAD' ? undefined : body)
        }
      })
    } catch (error) {
      log.error({ err: error, digest }, 'a blob could not be read to its end')
      reply.raw.destroy()
    }
    return reply
  }

  const swarmOff = (): DaemonError =>
    new DaemonError(
      'E_NOT_IMPLEMENTED',
      'the swarm client is off; set "[swarm] enabled" to true in the configuration and start the daemon again'
    )

  return {
    resolve,
    open: async (request, reply) => {
      sendJson(reply, 200, await openRef(requiredParameter(request.raw.url ?? '', 'ref'), resolver, store, documents))
      return reply
    },
    ensure: async (request, reply) => {
      const { ref } = bodyOf(EnsureBodySchema, request)
      const job = await ensure(ref, {
        resolver,
        store,
        documents,
        artifacts,
        jobs,
        toEnvelope: (error) => jobEnvelope(error, context),
        filler: () => parts.swarm?.filler
      })
      accepted(reply, job)
      return reply
    },
    job: (request, reply) => {
      const { id } = request.params as { id: string }
      const job = jobs.get(id)
      if (job === undefined) {
        throw new DaemonError(
          'E_NOT_FOUND',
          `there is no job ${JSON.stringify(id.slice(0, 100))}; jobs are lost when the daemon restarts`
        )
      }
      sendJson(reply, 200, job)
    },
    jobs: (_request, reply) => sendJson(reply, 200, { jobs: jobs.list() }),
    blob,
    blobHead: blob,
    importLocal: async (request, reply) => {
      const { paths, as } = bodyOf(ImportLocalBodySchema, request)
      const repo = importTarget(as, 'as')
      accepted(reply, await importer.start({ kind: 'import-local', ref: as, repo, source: await localSource(paths) }))
      return reply
    },
    importHf: async (request, reply) => {
      const body = bodyOf(ImportHfBodySchema, request)
      if (parts.hub === undefined) throw noHub()
      accepted(reply, await parts.hub.importHf(body))
      return reply
    },
    importHfPlan: async (request, reply) => {
      const body = bodyOf(ImportHfBodySchema, request)
      if (parts.hub === undefined) throw noHub()
      sendJson(reply, 200, await parts.hub.plan(body))
      return reply
    },
    importBt: async (request, reply) => {
      const body = bodyOf(ImportBtBodySchema, request)
      if (parts.swarm === undefined) throw swarmOff()
      accepted(reply, await parts.swarm.importBt(body))
      return reply
    },
    importCatalog: async (request, reply) => {
      const body = bodyOf(ImportCatalogBodySchema, request)
      if (!config.swarm.enabled || parts.catalog === undefined) throw noCatalog()
      accepted(reply, await parts.catalog.importCatalog(body))
      return reply
    },
    catalogSearch: async (request, reply) => {
      const terms = requiredParameter(request.raw.url ?? '', 'q')
      if (parts.catalog === undefined) throw noCatalog()
      sendJson(reply, 200, await parts.catalog.search(terms))
      return reply
    },
    verify: async (request, reply) => {
      const { target } = bodyOf(VerifyBodySchema, request)
      accepted(reply, await verify(target, { resolver, store, documents, repos, artifacts, jobs }))
      return reply
    },
    models: async (_request, reply) => {
      sendJson(reply, 200, await inventory(repos, documents, store))
      return reply
    },
    status: async (_request, reply) => {
      sendJson(reply, 200, await statusOf(context, parts, startedAt))
      return reply
    },
    share: async (request, reply) => {
      const resolved = await resolver.resolve(requiredParameter(request.raw.url ?? '', 'ref'))
      const [manifestDigest] = digestsOf(resolved)
      if ((await documents.manifest(manifestDigest)) === undefined) {
        throw new DaemonError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
      }
      if (parts.swarm === undefined) throw swarmOff()
      sendJson(reply, 200, await parts.swarm.share({ ref: resolved.ref, manifestDigest }))
      return reply
    }
  }
}

/** The `error` of a job; what it does not tell goes to the log. */
export function jobEnvelope(
  error: unknown,
  { log }: Pick<DaemonContext, 'log'>,
  job?: { readonly id: string; readonly kind: string }
): NonNullable<Job['error']> {
  const wire = toWireError(error)
  if (wire.hidden) log.error({ err: error, job: job?.id, kind: job?.kind }, 'job failed')
  else
    log.info(
      { code: wire.envelope.error.code, reason: wire.envelope.error.message, job: job?.id, kind: job?.kind },
      'job failed'
    )
  return wire.envelope.error
}

/** `ns/name` that something may be imported into. @throws DaemonError `E_BAD_REQUEST` */
function importTarget(text: string, field: string): RepoId {
  let repo: RepoId
  try {
    repo = parseRepoId(text)
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', `the field "${field}": ${(cause as Error).message}`, { cause })
  }
  if (!isReservedNamespace(repo.ns)) return repo
  throw new DaemonError(
    'E_BAD_REQUEST',
    `the field "${field}": the namespace "${repo.ns}" is reserved; choose another one`
  )
}

function blobDigest(text: string): Sha256Digest {
  const digest = tryParseDigest(text) ?? (/^[0-9a-f]{64}$/.test(text) ? digestFromHex(text) : undefined)
  if (digest !== undefined) return digest
  throw new DaemonError(
    'E_BAD_REQUEST',
    'a blob is addressed by "sha256:" and 64 lower-case hex characters, or by the hex alone'
  )
}

const noHub = (): DaemonError => new DaemonError('E_SOURCE_UNAVAILABLE', 'this daemon was built without the hub source')

const noCatalog = (): DaemonError =>
  new DaemonError(
    'E_SOURCE_UNAVAILABLE',
    'the catalog needs the swarm client, which is off; set "[swarm] enabled" to true in the configuration and start the daemon again',
    { status: 503 }
  )
