import type { View } from '@svc/client'
import type { Publication, PublishProgress, Target } from '@svc/publish'
import { usage } from '../errors.ts'
import { withProgress } from '../follow.ts'
import { count, formatBytes } from '../format.ts'
import { withPublish } from '../libraries.ts'
import { type ModelToPack, withModelsToPack } from '../models/packing.ts'
import { storedModel } from '../models/stored-model.ts'
import type { Shown } from '../progress.ts'
import type { Session } from '../session.ts'

export interface PublishCommandOptions {
  readonly url?: string
  readonly tracker?: readonly string[]
  readonly endpoint?: string
  readonly region?: string
  /** False with `--no-check`. */
  readonly check?: boolean
  readonly withheld?: boolean
}

/** `svc publish REF… DIR|s3://bucket/prefix` */
export async function publish(
  session: Session,
  operands: readonly string[],
  options: PublishCommandOptions
): Promise<void> {
  const place = operands.at(-1)
  if (operands.length < 2 || place === undefined) {
    throw usage('a destination is missing', `svc publish ${operands[0] ?? 'ns/name:quant'} s3://bucket/models`)
  }
  const givenUrl = options.url === undefined ? undefined : baseUrl(options.url)
  await withPublish(session, async (lib) => {
    const where = lib.parsePlace(place, session.terminal.cwd)
    await withModelsToPack(session, operands.slice(0, -1), 'publish', options, async (subjects, views) => {
      const { endpoint, region } = options
      const target = await lib.openTarget(where, { endpoint, region, env: session.terminal.env })
      try {
        const models = subjects.map((subject, i) => ({ ...subject, view: views[i]! }))
        await publishTo(session, lib, target, models, { ...options, givenUrl })
      } finally {
        await target.close()
      }
    })
  })
}

type PublishModule = typeof import('@svc/publish')

async function publishTo(
  session: Session,
  lib: PublishModule,
  target: Target,
  subjects: readonly (ModelToPack & { readonly view: View })[],
  { givenUrl, tracker, check }: PublishCommandOptions & { readonly givenUrl: string | undefined }
): Promise<void> {
  const { signal } = session
  const url = await lib.readerUrl(target, givenUrl, signal)
  const publications: Publication[] = []
  const warnings: string[] = []
  for (const subject of subjects) {
    const input = await storedModel(session, subject)
    warnings.push(...input.warnings)
    publications.push(await lib.publicationOf({ ...input, url, trackers: tracker }, signal))
  }
  for (const warning of warnings) session.note(`warning: ${warning}`)
  const checkUrl = givenUrl !== undefined && check !== false
  const done = await withProgress(session, { kind: 'publish', ref: target.name }, (update) =>
    lib.publish(publications, target, { url, checkUrl, signal, onProgress: (progress) => update(shownOf(progress)) })
  )
  const models = publications.map((publication) => factsOf(lib, publication, url))
  if (session.json) {
    const told = warnings.length > 0 ? warnings : undefined
    return session.document({ target: target.name, url, ...done, models, warnings: told })
  }
  for (const { command } of models) session.print(command)
  const { sentBytes, presentBytes, checkedRanges } = done
  session.note(
    `wrote ${formatBytes(sentBytes)}, ${formatBytes(presentBytes)} already present; ${count(checkedRanges, 'range')} read back`
  )
  session.note(
    url === undefined
      ? 'the torrents have no webseed yet: set --url to the address at which a web server serves this folder'
      : `index page: ${url}index.html`
  )
}

/** The facts of a publication, and the command that imports it. */
function factsOf(lib: PublishModule, publication: Publication, url: string | undefined) {
  const { ref, manifestDigest, infohash, name, magnet, torrentKey, isWithheld, isOpaque, companions } = publication
  const command = lib.importCommand(
    { ref, manifest: manifestDigest, magnet, withheld: isWithheld, opaque: isOpaque, companions },
    url
  )
  return { ref, manifestDigest, infohash, name, magnet, torrent: torrentKey, command }
}

const shownOf = ({ phase, file, ...counts }: PublishProgress): Partial<Shown> => ({
  ...counts,
  ...(phase === 'checking' && { message: 'reading back' }),
  ...(file !== undefined && { files: [file] })
})

/** Normalizes a base URL to end in a slash. @throws CliError for one that paths cannot be appended to */
function baseUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.search + url.hash + url.username !== '') {
    throw usage('--url must be an http or https address without query or credentials, such as https://models.example/')
  }
  return url.pathname.endsWith('/') ? url.href : `${url.href}/`
}
