import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ImportOciBody } from '@svc/client'
import type { OciManifest, PackedImage } from '@svc/oci'
import { CliError, usage } from '../errors.ts'
import { withProgress } from '../follow.ts'
import { count, formatBytes } from '../format.ts'
import { withOci } from '../libraries.ts'
import { membersOf } from '../models/models-here.ts'
import { type PackOptions, packView, withModelsToPack } from '../models/packing.ts'
import { importName } from '../models/reference.ts'
import type { Shown } from '../progress.ts'
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
  if (session.json) {
    const manifests = images.map(({ ref, manifest: { digest } }) => ({ ref, digest }))
    return session.document({ path: place, manifests })
  }
  session.print(place)
  for (const { ref, manifest } of images) session.note(`${ref ?? 'a model'} is ${manifest.digest} there`)
  session.note(`import it elsewhere with: svc import oci ${target}`)
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
  const found = await look(session, source, options)
  const replace = options.replace === true || (await mayTakeTheNames(session, found, options.as))
  for (const { ref, body } of found) {
    const as =
      options.as === undefined
        ? (ref?.split(':')[0] ?? (await askName(session, source)))
        : importName(options.as, source)
    const { names: _, ...choice } = choiceOf(options)
    // our own artifacts have the names of a manifest, those of others need to be normalized
    const names = ref === undefined && options.keepNames !== true ? { names: 'normalized' as const } : {}
    const whole = { ...body, as, ...choice, ...names }
    await finishImport(session, (field) => session.client.importOci({ ...whole, ...field }), { ...options, replace })
  }
}

/**
 * Asks, before anything is fetched, whether a model may take its name from another one. The annotations may be wrong:
 * the daemon decides when it has the files. @throws CliError `E_NAME_TAKEN`
 */
async function mayTakeTheNames(
  session: Session,
  found: readonly FoundArtifact[],
  as: string | undefined
): Promise<boolean> {
  const members = membersOf(await session.client.models())
  const refs: string[] = []
  for (const { ref, pin } of found) {
    const [own, quant] = ref?.split(':') ?? []
    const name = as ?? own
    const taken = members.find((member) => member.ref === `${name}:${quant}`)
    if (taken !== undefined && pin !== undefined && taken.manifest !== pin) refs.push(`${name}:${quant}`)
  }
  if (refs.length === 0) return false
  await requireConsent(session, refs, as)
  return true
}

interface FoundArtifact {
  readonly ref: string | undefined
  /** The manifest that it says it was packed from. */
  readonly pin: string | undefined
  readonly body: Omit<ImportOciBody, 'as'>
}

/** The images at a source: an existing path, or else a reference to a registry. */
async function look(
  session: Session,
  source: string,
  { tag, plainHttp }: ImportOciOptions
): Promise<readonly FoundArtifact[]> {
  const path = resolve(session.terminal.cwd, source)
  return withOci(session, async (oci) => {
    const namesOf = ({ annotations }: OciManifest): Pick<FoundArtifact, 'ref' | 'pin'> => ({
      ref: annotations[oci.REF_ANNOTATION],
      pin: annotations[oci.PIN_ANNOTATION]
    })
    if (!existsSync(path)) {
      const reference = oci.tryParseRegistryReference(source)
      if (reference === undefined)
        throw new CliError('notFound', `${source} is not a file, a folder or a registry/name:tag`)
      const repository = new oci.Repository(reference, { userAgent: 'svc', plainHttp })
      try {
        const { bytes, mediaType } = await repository.manifest(reference.digest ?? reference.tag, session)
        const unnamed = { ref: undefined, pin: undefined }
        const own = mediaType === oci.INDEX_TYPE ? unnamed : namesOf(oci.parseOciManifest(bytes))
        return [{ ...own, body: { image: source, ...(plainHttp === true && { plainHttp }) } }]
      } finally {
        await repository.close()
      }
    }
    const layout = await oci.openLayout(path)
    const chosen = tag === undefined ? layout.index.manifests : [oci.chooseManifest(layout.index, tag)]
    const found: FoundArtifact[] = []
    for (const descriptor of chosen) {
      if (descriptor.mediaType !== oci.MANIFEST_TYPE) continue
      const own = namesOf(oci.parseOciManifest(await layout.document(descriptor)))
      found.push({ ...own, body: { path, manifest: descriptor.digest } })
    }
    if (found.length === 0) throw new CliError('failed', `${source} contains no model`)
    if (found.length > 1) session.note(`${source} contains ${count(found.length, 'model')}`)
    return found
  })
}

/** Asks for a name when nothing suggests one. @throws CliError without a terminal */
async function askName(session: Session, source: string): Promise<string> {
  if (!canAsk(session)) return importName(undefined, source)
  return importName(await asking(session, (ask) => ask('Name to keep it under (ns/name): ')), source)
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
