// A [[trust]] rule that is younger than the models here: mirrors show only what a signature covers.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { WhyResult } from '@svc/client/protocol'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test } from 'vitest'
import { BUILTIN_NETWORKS } from '../../src/app/networks.ts'
import { mergeConfig } from '../../src/config/config.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import type { Files } from '../support/models.ts'
import { FOLDER, SPOILT, signerIn } from '../support/signed-models.ts'

const MODELS: Readonly<Record<string, string>> = {
  Good: 'signed',
  Bad: 'a flipped byte in the weights',
  Bare: 'no signature'
}

async function world(onDemand = false) {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const folder = temporaryFolder()
  const signer = signerIn(folder)
  const filesOf = (how: string): Files => SPOILT[how]?.(signer).files ?? signer.sign(FOLDER)
  for (const [name, how] of Object.entries(MODELS))
    hub.commit({
      id: `Acme/${name}`,
      files: Object.entries(filesOf(how)).map(([path, content]) => ({
        path,
        content: Buffer.from(content),
        ...(path.endsWith('.safetensors') && { lfs: true })
      }))
    })
  const any = '127.0.0.1:0'
  const start = (mode: string, names: readonly string[]): Promise<TestDaemon> => {
    const config = mergeConfig(
      {
        swarm: { enabled: false },
        hub: { endpoint: hub.endpoint },
        mirror: { hub_addr: any, oci_addr: any, s3_addr: any, on_demand: onDemand },
        trust: [{ names: [...names], mode, keys: [signer.keyFile] }]
      },
      { root: join(folder, 'root') },
      {}
    )
    return testDaemon({ folder, config, networks: { hub: BUILTIN_NETWORKS.hub! } })
  }
  const addresses = (): Record<string, string> => JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8'))
  /** What each door shows of each model. */
  const shown = async (): Promise<Record<string, string[]>> => {
    const { hubMirrorAddress, ociMirrorAddress, s3MirrorAddress } = addresses()
    const listing = await (await fetch(`http://${s3MirrorAddress}/models?list-type=2`)).text()
    const found: Record<string, string[]> = {}
    for (const name of Object.keys(MODELS)) {
      const file = `/Acme/${name}/resolve/main/model.safetensors`
      const [own, hub, oci] = [
        `acme/${name.toLowerCase()}`,
        await fetch(`http://${hubMirrorAddress}${file}`),
        await fetch(`http://${ociMirrorAddress}/v2/acme/${name.toLowerCase()}/tags/list`)
      ]
      const s3 = await fetch(`http://${s3MirrorAddress}/models/${own}/bf16/model.safetensors`)
      const doors = { hub: hub.ok, oci: oci.ok, s3: s3.ok, list: listing.includes(`${own}/bf16/`) }
      for (const answer of [hub, oci, s3]) await answer.body?.cancel()
      found[name] = Object.entries(doors).flatMap(([door, isOpen]) => (isOpen ? [door] : []))
    }
    return found
  }
  return { start, shown, addresses }
}

const ALL = ['hub', 'oci', 's3', 'list']

test.each([
  ['the name here', 'acme/*'],
  ['every name', '*']
])('a rule for %s removes unsigned models from the mirrors; without the rule they return', async (_, names) => {
  const { start, shown } = await world()
  const before = await start('off', [names])
  for (const name of Object.keys(MODELS)) {
    const { body } = await before.post('/v1/import/hf', { repo: `Acme/${name}` })
    expect(await before.finished(body)).toMatchObject({ state: 'done' })
  }
  expect(await shown()).toEqual({ Good: ALL, Bad: ALL, Bare: ALL })
  await before.running.close({ quick: true })

  const strict = await start('require', [names])
  expect(await shown()).toEqual({ Good: ALL, Bad: [], Bare: [] })
  const withheld = async (name: string): Promise<unknown> => {
    const { doors } = (await strict.get(`/v1/why?ref=svc:///acme/${name}:bf16`)).body as WhyResult
    return doors.flatMap(({ door, withheld }) => (withheld?.fact === 'unsigned' ? [[door, withheld.reason]] : []))
  }
  expect(await withheld('good')).toEqual([])
  const because = expect.stringMatching(/^\[\[trust\]\] 1 .*changed: model\.safetensors/)
  expect(await withheld('bad')).toEqual(['hub-mirror', 'oci-mirror', 's3-mirror'].map((door) => [door, because]))
  // its owner still has it
  expect((await strict.open('svc:///acme/bad:bf16')).body.missing).toBeUndefined()
  await strict.running.close({ quick: true })

  await start('warn', [names])
  expect(await shown()).toEqual({ Good: ALL, Bad: ALL, Bare: ALL })
})

test("a model that a mirror's client caused is shown after a restart, thanks to its stored signature", async () => {
  const { start, shown, addresses } = await world(true)
  const first = await start('require', ['acme/*'])
  for (;;) {
    const answer = await fetch(`http://${addresses().hubMirrorAddress}/Acme/Good/resolve/main/model.safetensors`)
    await answer.body?.cancel()
    if (answer.status === 200) break
    expect(answer.status).toBe(429)
  }
  await first.running.close({ quick: true })
  await start('require', ['acme/*'])
  expect(await shown()).toEqual({ Good: ALL, Bad: [], Bare: [] })
})
