import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '../../packages/testkit/src/fake-hub.ts'
import { makeModelFolder } from '../../packages/testkit/src/models.ts'
import type { Stage } from './stage.ts'

const REPO = 'Demo/Tiny'
const CLIENT = 'packages/testkit/src/stock-hub-client.ts'

/** An unmodified hub client loads a model through a daemon's mirror: first on demand, then without internet access. */
export async function run(stage: Stage): Promise<void> {
  stage.step('A model hub in place of the one on the internet: on loopback, with one small model')
  const source = join(stage.folder, 'model')
  const names = makeModelFolder(source, { ggufs: {} })
  const hub = await startFakeHub()
  let isUp = true
  const goAway = async (): Promise<void> => {
    if (isUp) await hub.close()
    isUp = false
  }
  stage.later(goAway)
  const commit = hub.commit({
    id: REPO,
    files: names.map((path) => ({ path, content: readFileSync(join(source, path)) }))
  })
  stage.say(`  ${hub.endpoint} has ${REPO} at ${commit.slice(0, 12)}: ${names.length} files`)

  stage.step('A machine with internet access: a daemon whose mirror imports what clients request')
  const config = `[swarm]\nenabled = false\n\n[hub]\nendpoint = "${hub.endpoint}"\n\n[mirror]\nhub_addr = "127.0.0.1:0"\non_demand = true\non_demand_allow = ["demo/*"]\n`
  stage.say(config.replaceAll(/^(?=.)/gm, '  '))
  const daemon = await stage.daemon('gateway', config)
  const mirror = `http://${daemon.facts.hubMirrorAddress}`
  stage.say(`  the mirror is ${mirror}`)
  await daemon.svc('ls')

  stage.step(
    'A program on another machine loads the model: the hub’s own client, and it knows of nothing but the mirror’s address'
  )
  const first = await stage.script(CLIENT, mirror, REPO, join(stage.folder, 'first-cache'))
  compare(stage, source, first)
  await daemon.svc('ls')

  stage.step('Internet access is lost')
  await goAway()
  stage.say(`  ${hub.endpoint} is closed`)

  stage.step('Another program, with an empty cache, loads the same model')
  const second = await stage.script(CLIENT, mirror, REPO, join(stage.folder, 'second-cache'))
  compare(stage, source, second)

  stage.step('A model that nobody requested before is not available')
  const { status, headers } = await fetch(`${mirror}/api/models/Other/Model`)
  stage.say(`  ${mirror}/api/models/Other/Model: ${status} ${headers.get('x-error-code')}`)
  if (status !== 404) throw new Error(`404 was expected, not ${status}`)
}

/** Checks that the loaded files are byte-identical to those of the hub. */
function compare(stage: Stage, source: string, snapshot: string): void {
  const loaded = readdirSync(snapshot)
  for (const name of loaded) {
    const same = readFileSync(join(snapshot, name)).equals(readFileSync(join(source, name)))
    if (!same) throw new Error(`${name} differs from the file on the hub`)
  }
  if (!loaded.includes('model.safetensors')) throw new Error('the weights were not loaded')
  stage.say(`  ${loaded.length} files, byte-identical to those on the hub: ${loaded.join(', ')}`)
}
