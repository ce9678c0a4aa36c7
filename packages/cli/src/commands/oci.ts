import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ImportOciBody } from '@svc/client'
import type { OciManifest, PackedImage } from '@svc/oci'
import { formatRepoId, isQuant, isReservedNamespace, tryParseRepoId } from '@svc/ref'
import { suggestedOllamaName, tryParseOllamaName } from '@svc/view'
import { CliError, usage } from '../errors.ts'
import { withProgress } from '../follow.ts'
import { count, formatBytes, shellWord } from '../format.ts'
import { withOci } from '../libraries.ts'
import { membersOf } from '../models/models-here.ts'
import { rememberPacked, wasPackedHere } from '../models/packed-here.ts'
import { type PackOptions, packView, withModelsToPack } from '../models/packing.ts'
import { importName, nameNeeded } from '../models/reference.ts'
import type { Shown } from '../progress.ts'
import { takingAsTheyAre } from '../questions/as-they-are.ts'
import { asking, canAsk } from '../questions/question.ts'
import { requireConsent } from '../questions/replacing.ts'
import type { Session } from '../session.ts'
import { type ChoiceOptions, choiceOf, finishImport } from './imports.ts'

/** `svc export oci REF… DIR|FILE.tar [--image] [--withheld]` */
export async function exportOci(session: Session, words: readonly string[], options: PackOptions): Promise<void> {
  const target = words.at(-1)
  if (words.length < 2 || target === undefined) {
    throw usage(
      'an export needs models and a destination',
      `svc export oci ${words[0] ?? 'ns/name:quant'} ./models.tar`
    )
  }
  const place = resolve(session.terminal.cwd, target)
  const images = await packed(session, words.slice(0, -1), 'export', options, (all) =>
    withOci(session, async (oci) => {
      const write = place.endsWith('.tar') ? oci.writeArchive : oci.writeLayout
      const subject = { kind: 'export', ref: place, bytesTotal: oci.bytesOf(all) } as const
      await transferred(session, subject, (onBytes) => write(place, all, { signal: session.signal, onBytes }))
    })
  )
  await rememberPacked(
    session.terminal.env,
    images.map(({ manifest: { digest } }) => digest)
  )
  if (session.json) {
    const manifests = images.map(({ ref, manifest: { digest } }) => ({ ref, digest }))
    return session.document({ path: place, manifests })
  }
  session.print(place)
  for (const { ref, manifest } of images) session.note(`${ref ?? 'a model'} is ${manifest.digest} there`)
  const models = images.map(({ ref, manifest: { digest } }) => ({ name: ref?.split(':')[0], digest }))
  session.note(`import it elsewhere with: ${importCommands(target, models)}`)
}

export interface PushCommandOptions extends PackOptions {
  readonly plainHttp?: boolean
  readonly mountFrom?: string
}

/** `svc push REF registry/name[:tag]`; the default tag is the quant. */
export async function push(session: Session, text: string, image: string, options: PushCommandOptions): Promise<void> {
  await withOci(session, async (oci) => {
    const { digest, ...reference } = oci.parseRegistryReference(image)
    if (digest !== undefined) throw usage('push to a tag, not to a digest')
    await packed(session, [text], 'push', options, async ([only]) => {
      const quant = only?.ref?.split(':')[1]
      const hasTag = image.slice(image.indexOf('/')).includes(':')
      const to = { ...reference, tag: hasTag || quant === undefined ? reference.tag : quant }
      const repository = new oci.Repository(to, { userAgent: 'svc', plainHttp: options.plainHttp })
      try {
        const name = oci.formatRegistryReference(to)
        const subject = { kind: 'push', ref: name, bytesTotal: oci.bytesOf([only!]) } as const
        const pushed = await transferred(session, subject, (onBytes) =>
          oci.pushImage(repository, to.tag, only!, {
            signal: session.signal,
            mountFrom: options.mountFrom,
            onBytes,
            onWaiting: (message) => session.note(message)
          })
        )
        await rememberPacked(session.terminal.env, [pushed.digest])
        if (session.json) return session.document({ image: name, ...pushed })
        session.print(`${name}@${pushed.digest}`)
        session.note(`sent ${formatBytes(pushed.sentBytes)}; ${formatBytes(pushed.presentBytes)} were there`)
      } finally {
        await repository.close()
      }
    })
  })
}

/** Packs models, and holds their views while `work` writes or sends them. */
async function packed(
  session: Session,
  refs: readonly string[],
  door: 'export' | 'push',
  options: PackOptions,
  work: (images: readonly PackedImage[]) => Promise<void>
): Promise<readonly PackedImage[]> {
  return withModelsToPack(session, refs, door, options, async (models, views) => {
    const images: PackedImage[] = []
    for (const [i, view] of views.entries())
      images.push(await withOci(session, () => packView(session, view, models[i]!, options)))
    await work(images)
    return images
  })
}

export interface ImportOciOptions extends ChoiceOptions {
  readonly tag?: string
  readonly plainHttp?: boolean
}

/** `svc import oci DIR|FILE.tar|registry/name:tag [--as ns/name] [--tag TAG]` */
export async function importOci(session: Session, source: string, options: ImportOciOptions): Promise<void> {
  const named = await withNames(session, source, await look(session, source, options), options.as)
  const replace = options.replace === true || (await mayTakeTheNames(session, named))
  for (const { as, claim, body } of named) {
    const { names: _, ...choice } = choiceOf(options)
    // what svc packed has the names of a manifest, what others packed needs to be normalized
    const names = claim === undefined && options.keepNames !== true ? { names: 'normalized' as const } : {}
    const whole = { ...body, as, ...choice, ...names }
    await takingAsTheyAre(session, options, (opaque) =>
      finishImport(session, (field) => session.client.importOci({ ...whole, ...opaque, ...field }), {
        ...options,
        as,
        replace
      })
    )
  }
}

/** Hosts under which Ollama pulls from the hub. */
const HUB_HOSTS: ReadonlySet<string> = new Set(['hf.co', 'huggingface.co'])

/** `svc import ollama [host/][ns/]model[:tag] [--as ns/name]`, under the name that Ollama has for it. */
export async function importOllama(session: Session, text: string, options: ImportOciOptions): Promise<void> {
  const name = tryParseOllamaName(text)
  if (name === undefined) throw usage(`"${text}" is not a model as Ollama names it`, 'svc import ollama qwen3:8b')
  const { host, ns, model, tag } = name
  if (HUB_HOSTS.has(host)) {
    const quant = tag === 'latest' ? '' : `:${tag}`
    throw usage(`${text} is a repository of the hub`, `svc import hf ${ns}/${model}${quant}`)
  }
  // its registry does not tell cases apart
  const image = `${host}/${ns.toLowerCase()}/${model.toLowerCase()}:${tag}`
  await importOci(session, image, { ...options, as: options.as ?? suggestedOllamaName(name) })
}

/**
 * Asks, before anything is fetched, whether a model may take its name from another one. The annotations may be wrong:
 * the daemon decides when it has the files. @throws CliError `E_NAME_TAKEN`
 */
async function mayTakeTheNames(session: Session, named: readonly ArtifactToImport[]): Promise<boolean> {
  const members = membersOf(await session.client.models())
  const taken = named.filter(({ as, claim, pin }) => {
    const here = members.find((member) => member.ref === `${as}:${claim?.quant}`)
    return here !== undefined && pin !== undefined && here.manifest !== pin
  })
  if (taken.length === 0) return false
  const refs = taken.map(({ as, claim }) => `${as}:${claim?.quant}`)
  await requireConsent(session, refs, taken.length === 1 ? taken[0]!.as : undefined)
  return true
}

interface FoundArtifact {
  /** The name and quant that it says it has; undefined if it says none that a model can have. */
  readonly claim: { readonly name: string; readonly quant: string } | undefined
  /** The manifest that it says it was packed from. */
  readonly pin: string | undefined
  /** Of its OCI manifest. */
  readonly digest: string
  readonly body: Omit<ImportOciBody, 'as'>
}

interface ArtifactToImport extends FoundArtifact {
  /** The name to keep it under: the owner's word. */
  readonly as: string
}

/** The images at a source: an existing path, or else a reference to a registry. */
async function look(
  session: Session,
  source: string,
  { tag, plainHttp }: ImportOciOptions
): Promise<readonly FoundArtifact[]> {
  const path = resolve(session.terminal.cwd, source)
  return withOci(session, async (oci) => {
    const saidBy = ({ annotations }: OciManifest): Pick<FoundArtifact, 'claim' | 'pin'> => ({
      claim: claimOf(annotations[oci.REF_ANNOTATION]),
      pin: annotations[oci.PIN_ANNOTATION]
    })
    if (!existsSync(path)) {
      const reference = oci.tryParseRegistryReference(source)
      if (reference === undefined)
        throw new CliError('notFound', `${source} is not a file, a folder or a registry/name:tag`)
      const repository = new oci.Repository(reference, { userAgent: 'svc', plainHttp })
      try {
        const { bytes, mediaType, digest } = await repository.manifest(reference.digest ?? reference.tag, session)
        const said =
          mediaType === oci.INDEX_TYPE ? { claim: undefined, pin: undefined } : saidBy(oci.parseOciManifest(bytes))
        // by digest: what was looked at is what is fetched; the tag is part of the names of files that have none
        const image = `${oci.formatRegistryReference({ ...reference, digest: undefined })}@${digest}`
        return [{ ...said, digest, body: { image, ...(plainHttp === true && { plainHttp }) } }]
      } finally {
        await repository.close()
      }
    }
    const layout = await oci.openLayout(path)
    const chosen = tag === undefined ? layout.index.manifests : [oci.chooseManifest(layout.index, tag)]
    const found: FoundArtifact[] = []
    for (const descriptor of chosen) {
      if (descriptor.mediaType !== oci.MANIFEST_TYPE) continue
      const { digest } = descriptor
      const said = saidBy(oci.parseOciManifest(await layout.document(descriptor)))
      found.push({ ...said, digest, body: { path, manifest: digest } })
    }
    if (found.length === 0) throw new CliError('failed', `${source} contains no model`)
    if (found.length > 1) session.note(`${source} contains ${count(found.length, 'model')}`)
    return found
  })
}

function claimOf(annotation: string | undefined): FoundArtifact['claim'] {
  const [, name = '', quant = ''] = /^([^:]+):([^:]+)$/.exec(annotation ?? '') ?? []
  const repo = tryParseRepoId(name)
  if (repo === undefined || isReservedNamespace(repo.ns) || !isQuant(quant)) return undefined
  return { name: formatRepoId(repo), quant }
}

/**
 * Gives each artifact its name: from `--as`, of what this user packed from the artifact, else from whoever is at the
 * terminal. @throws CliError without a terminal, with the commands to type
 */
async function withNames(
  session: Session,
  source: string,
  found: readonly FoundArtifact[],
  as: string | undefined
): Promise<readonly ArtifactToImport[]> {
  if (as !== undefined) return found.map((each) => ({ ...each, as: importName(as, source) }))
  const own = ({ claim, digest }: FoundArtifact): string | undefined =>
    claim !== undefined && wasPackedHere(session.terminal.env, digest) ? claim.name : undefined
  if (!canAsk(session) && !found.every((each) => own(each) !== undefined)) throw nameless(source, found)
  const named: ArtifactToImport[] = []
  for (const each of found) named.push({ ...each, as: own(each) ?? (await askName(session, source, each)) })
  return named
}

function nameless(source: string, found: readonly FoundArtifact[]): CliError {
  const claims = found.flatMap(({ claim }) => (claim === undefined ? [] : [`${claim.name}:${claim.quant}`]))
  if (claims.length === 0) return nameNeeded(source)
  const said = claims.slice(0, MAX_COMMANDS).join(', ') + (claims.length > MAX_COMMANDS ? ', …' : '')
  const models = found.map(({ claim, digest }) => ({ name: claim?.name, digest }))
  return usage(
    `an import needs a name for the model: ${source} says ${said}, but was not packed here`,
    importCommands(source, models)
  )
}

/** Asks for a name. What the artifact says is shown, and taken only if it is confirmed. */
async function askName(session: Session, source: string, { claim }: FoundArtifact): Promise<string> {
  const said = claim === undefined ? '' : `${source} says that it is ${claim.name}:${claim.quant}. `
  const orClaim = claim === undefined ? '' : `; Enter for ${claim.name}`
  const answer = await asking(session, (ask) => ask(`${said}Name to keep it under (ns/name${orClaim}): `))
  return importName(answer === '' ? claim?.name : answer, source)
}

/** How many commands an advice has at most. */
const MAX_COMMANDS = 8

/** The commands that import artifacts under these names; each by its digest if there are several. */
function importCommands(
  source: string,
  models: readonly { readonly name: string | undefined; readonly digest: string }[]
): string {
  const commands = models.slice(0, MAX_COMMANDS).map(({ name = 'ns/name', digest }) => {
    const only = models.length === 1 ? '' : ` --tag ${digest}`
    return `svc import oci ${shellWord(source)}${only} --as ${name}`
  })
  return commands.join(' && ') + (models.length > MAX_COMMANDS ? ` && …` : '')
}

/** Shows a transfer that reports the bytes of each step. */
function transferred<T>(
  session: Session,
  { bytesTotal, ...subject }: Pick<Shown, 'kind' | 'ref'> & { readonly bytesTotal: number },
  work: (onBytes: (bytes: number) => void) => Promise<T>
): Promise<T> {
  let bytesDone = 0
  return withProgress(session, subject, (update) =>
    work((bytes) => {
      bytesDone = Math.min(bytesTotal, bytesDone + bytes)
      update({ bytesDone, bytesTotal })
    })
  )
}
