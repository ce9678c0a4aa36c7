import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isDigest } from '@svc/ref'
import { examine } from '../commands/doctor.ts'
import { planWithFit } from '../commands/remote.ts'
import { type HubSource, tryParseHubAddress, tryParseHubSource } from '../hub/hub-source.ts'
import { readDiskUse } from '../models/disk-use.ts'
import { readManifestBlob } from '../models/documents.ts'
import { asRepo, canonicalRef, shortRef } from '../models/reference.ts'
import { loadPath, madeView } from '../models/runtime-view.ts'
import { unknownHere } from '../models/unknown-here.ts'
import type { Session } from '../session.ts'
import { BridgeRefusal, textOf } from './answer.ts'
import { openOnDesktop } from './desktop.ts'

interface PageRequest {
  readonly session: Session
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly body: Readonly<Record<string, unknown>>
  /** Aborts when the page no longer waits for what it reads. */
  readonly signal?: AbortSignal | undefined
}

export type PageRoute = (request: PageRequest) => Promise<unknown>

/** What the page needs besides the routes of the daemon; keys are method and path. */
export const OWN_ROUTES: Readonly<Record<string, PageRoute>> = {
  'GET bridge/disk': ({ session }) => readDiskUse(session),
  'GET bridge/removal': removal,
  'GET bridge/doctor': async ({ session }) => {
    const findings = await examine(session)
    return { ok: findings.every(({ level }) => level !== 'bad'), findings }
  },
  'POST bridge/plan': async ({ session, body }) => {
    const source = tryParseHubSource(textOf(body.source))
    if (source === undefined) throw new BridgeRefusal(400, 'E_BAD_REQUEST', 'this is no repository of the hub')
    return { ...(await planWithFit(session, source, 0)), source: hubSourceOf(source) }
  },
  'POST bridge/source': async ({ body }) => sourceOf(textOf(body.text).trim()),
  'GET bridge/commands': commands,
  'POST bridge/path': async ({ session, body }) => {
    const view = await madeView(session, textOf(body.ref))
    return { folder: view.folder, path: loadPath(view, undefined) }
  },
  'POST bridge/open-folder': async ({ session, body }) => {
    const { folder } = await madeView(session, textOf(body.ref))
    return { folder, opened: openOnDesktop(session.terminal.env, folder) }
  }
}

/** What the removal of a name frees, unless a tag, a view or a job keeps it. */
async function removal({ session, query }: PageRequest): Promise<unknown> {
  const text = textOf(query.get('ref'))
  const repo = asRepo(text)
  const ref = repo ?? shortRef(await canonicalRef(session, text))
  const { models, repositories } = await readDiskUse(session)
  const use = (repo === undefined ? models : repositories).find((each) => each.ref === ref)
  if (use === undefined) throw unknownHere(ref, [], { isWanted: false })
  const quants = models.flatMap((each) => (each.ref === ref || each.ref.startsWith(`${ref}:`) ? [each.ref] : []))
  return { ref, quants, freeableBytes: use.aloneBytes, sharedBytes: use.sharedBytes }
}

const hubSourceOf = ({ repo, revision, quant, file }: HubSource) => ({
  repo,
  ...(revision !== undefined && { revision }),
  ...(quant !== undefined && { quants: quant.split(',') }),
  ...(file !== undefined && { file })
})

const IMAGE =
  /^(?:oci:\/\/)?((?:localhost|[\w-]+(?:\.[\w-]+)+|[\w.-]+(?=:\d))(?::\d{1,5})?\/[\w./-]+(?::[\w.-]+|@sha256:[0-9a-f]{64}))$/
const COMPANIONS = /^(sha256:[0-9a-f]{64})@(btmh:1220[0-9a-f]{64})$/

/** A magnet link, with the options of the command around it that `svc share` or `svc publish` prints. */
function sharedModel(magnet: string, command: string): object {
  const options = command.replace(magnet, '')
  const valuesOf = (name: string): readonly string[] =>
    [...options.matchAll(new RegExp(`--${name}[= ]+['"]?([^\\s'"]+)`, 'g'))].map(([, value]) => value!)
  const manifestDigest = valuesOf('pin').find(isDigest)
  const [, digest, infohash] = COMPANIONS.exec(valuesOf('companions')[0] ?? '') ?? []
  const [as] = valuesOf('as')
  const lists = { webseeds: valuesOf('webseed'), trackers: valuesOf('tracker'), peers: valuesOf('peer') }
  return {
    magnet,
    ...(manifestDigest !== undefined && { manifestDigest }),
    ...(digest !== undefined && { companions: { digest, infohash } }),
    ...Object.fromEntries(Object.entries(lists).filter(([, values]) => values.length > 0)),
    ...(as !== undefined && { as }),
    ...(/--private(?:\s|$)/.test(options) && { private: true })
  }
}

/** Recognizes a text that somebody pastes. */
async function sourceOf(text: string): Promise<unknown> {
  const magnet = /magnet:\?[^\s'"]+/.exec(text)?.[0]
  if (magnet !== undefined) return { kind: 'bt', ...sharedModel(magnet, text) }
  const path = text.startsWith('~/') ? `${homedir()}${text.slice(1)}` : text
  if (path.startsWith('/')) {
    const facts = await stat(path).catch(() => undefined)
    return facts === undefined ? { kind: 'unknown' } : { kind: 'local', path, isFolder: facts.isDirectory() }
  }
  const image = tryParseHubAddress(text) === undefined ? IMAGE.exec(text)?.[1] : undefined
  if (image !== undefined) return { kind: 'oci', image }
  const source = tryParseHubSource(text)
  return source === undefined ? { kind: 'unknown' } : { kind: 'hf', ...hubSourceOf(source) }
}

/** Commands for the kinds of files that the manifest lists. References need no quotes in a shell. */
async function commands({ session, query }: PageRequest): Promise<unknown> {
  const resolved = await session.client.resolve(await canonicalRef(session, textOf(query.get('ref'))))
  const ref = shortRef(resolved.ref)
  const { files = [] } = await readManifestBlob(session.client, resolved.manifestDigest)
  const has = (kind: string): boolean => files.some((file) => file.kind === kind)
  const path = `"$(svc path ${ref})"`
  const folder = `"$(svc path ${ref} --dir)"`
  // of several, the path of one would be ambiguous
  const option = (name: string, fragment: string, role: string): string =>
    files.filter((file) => file.role === role).length === 1 ? ` ${name} "$(svc path '${ref}#${fragment}')"` : ''
  const beside = option('--mmproj', 'mmproj', 'vision-projector') + option('--model-draft', 'draft', 'draft')
  if (has('weights.gguf'))
    return {
      commands: [
        {
          runtime: 'llama.cpp',
          command: `llama-server -m ${path}${beside}`
        },
        {
          runtime: 'Ollama',
          command: `echo "FROM $(svc path ${ref})" > Modelfile && ollama create ${resolved.name} -f Modelfile`
        }
      ]
    }
  return {
    commands: [
      { runtime: 'vLLM', command: `vllm serve ${folder}` },
      {
        runtime: 'transformers',
        command: `from svc_client import Client\nmodel = AutoModelForCausalLM.from_pretrained(Client().folder("${ref}"))`
      }
    ]
  }
}
