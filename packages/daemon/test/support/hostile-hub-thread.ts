// A model hub in a thread of its own, with repositories of strangers who mean harm and of people who do not. What is withheld consists of
// `WITHHELD`, over and over, so that whoever receives it knows.
import { parentPort, workerData } from 'node:worker_threads'
import { startFakeHub } from '@svc/testkit/fake-hub'
import type { FakeTreeEntry } from '@svc/testkit/fake-hub-faults'
import { FORGED, HUB_TOKEN, LONG_LISTINGS, type ToHub, withheldGguf } from './hostile-hosts.ts'
import { type Files, gguf } from './models.ts'

const CONFIG = Buffer.from('{"model_type":"llama"}')
const MIB = 1 << 20
const withModel = (id: string, sizeBytes: number, seed: number) => ({
  id,
  files: [
    { path: 'config.json', content: CONFIG },
    { path: 'm-q8_0.gguf', content: gguf(sizeBytes, seed) }
  ]
})
const gates = { id: 'acme/gates', files: [{ path: 'm-q8_0.gguf', content: withheldGguf(MIB, 'later gated') }] }

/** A bundle that nobody signed, as large as signatures may be, in what it signs or in what comes with that. */
function forged(sizeBytes: number, what: 'payload' | 'entries'): Buffer {
  const some = (text: string, count: number): string[] => Array<string>(Math.ceil(count)).fill(text)
  const entry = { logIndex: '1', logId: { keyId: 'AAAA' }, integratedTime: '1', canonicalizedBody: 'AAAA' }
  const entries = what === 'entries' ? some(JSON.stringify(entry), sizeBytes / JSON.stringify(entry).length) : []
  // some signers signed such bytes as Python prints them: four characters each
  const payload = Buffer.alloc(what === 'payload' ? sizeBytes * 0.74 : 100, 0x9f)
  const type = 'application/vnd.in-toto+json'
  const signatures = [{ sig: Buffer.alloc(70, 48).toString('base64'), keyid: '' }]
  return Buffer.from(
    `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":""},` +
      `"tlogEntries":[${entries.join()}]},` +
      `"dsseEnvelope":${JSON.stringify({ payload: payload.toString('base64'), payloadType: type, signatures })}}`
  )
}

const SIGNATURES = [forged(7.5 * MIB, 'payload'), forged(0.9 * MIB, 'payload'), forged(0.9 * MIB, 'entries')]
const signed = Object.entries(workerData as Files).map(([path, content]) => ({ path, content: Buffer.from(content) }))

const hub = await startFakeHub({
  tokens: [HUB_TOKEN],
  // with as many files as pages
  pageSize: 1,
  repos: [
    withModel('acme/honest', 2 * MIB, 11),
    { id: 'acme/signed', files: signed },
    ...Array.from({ length: FORGED }, (_, i) => {
      const { id, files } = withModel(`acme/forged-${i}`, 100_000, 600 + i)
      return { id, files: [...files, { path: 'model.sig', content: SIGNATURES[i % SIGNATURES.length]! }] }
    }),
    withModel('evil/m', MIB, 12),
    { ...withModel('evil/moved-there', MIB, 13), formerId: 'acme/moved' },
    { ...gates, gated: 'auto' },
    {
      id: 'now/m',
      formerId: 'acme/was-m',
      private: true,
      files: [{ path: 'm-q8_0.gguf', content: withheldGguf(MIB, 'a private repository') }]
    },
    // its listing names bytes that only the owner of the daemon has
    { id: 'acme/claims', files: [{ path: 'm-q8_0.gguf', content: withheldGguf(3 * MIB, 'the owner’s own') }] },
    withModel('acme/pr', MIB, 14),
    ...Array.from({ length: 100 }, (_, i) => withModel(`acme/fresh-${i}`, 100_000, 400 + i)),
    ...Array.from({ length: 8 }, (_, i) => ({
      id: `acme/slow-${i}`,
      files: [{ path: 'm-q8_0.gguf', content: { seed: 100 + i, sizeBytes: 64 * MIB } }]
    })),
    ...Array.from({ length: LONG_LISTINGS }, (_, i) => {
      const { id, files } = withModel(`acme/names-${i}`, 1_000, 200 + i)
      return { id, files: [...files, ...['a', 'b', 'c'].map((path) => ({ path, content: CONFIG }))] }
    })
  ]
})
const prCommit = hub.commit({ ...withModel('acme/pr', MIB, 15), branch: 'refs/pr/1' })

/** Pages of 20,000 entries, five of which are as many as a listing may have, with names of 200 bytes. */
const longNames = ([first]: readonly FakeTreeEntry[]): FakeTreeEntry[] =>
  Array.from({ length: 19_990 }, (_, i) => {
    const path = `${String(first!.path)}-${i}-${'n'.repeat(180)}.json`
    return { type: 'file', oid: 'a'.repeat(40), size: 1, path }
  })

hub.setFaults(({ stage, url }) => {
  if (stage === 'tree' && /acme\/names-/.test(url))
    return { kind: 'tree', edit: (page) => [...page, ...longNames(page)] }
  if (stage === 'cdn' && /acme\/slow-/.test(url)) return { kind: 'drip', stepBytes: 4_096, everyMs: 200 }
  // whoever lists what it does not have cannot give it
  if (stage === 'cdn' && /acme\/claims/.test(url)) return { kind: 'status', status: 404 }
  return undefined
})

parentPort!.on('message', (message: ToHub) => {
  if (message.kind === 'commit') hub.commit(withModel(message.repo, MIB, message.seed))
})
parentPort!.postMessage({ endpoint: hub.endpoint, prCommit })
