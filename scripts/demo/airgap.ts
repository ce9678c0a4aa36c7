import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '../../packages/testkit/src/models.ts'
import type { Stage } from './stage.ts'

const REF = 'demo/tiny:bf16'
const QUIET = '[swarm]\nenabled = false\n'

/** A model crosses to a machine without any network, as one file. */
export async function run(stage: Stage): Promise<void> {
  stage.step('A machine with a model')
  const model = join(stage.folder, 'Tiny')
  makeModelFolder(model, { ggufs: {} })
  const outside = await stage.daemon('outside', QUIET)
  await outside.svc('import', 'local', model, '--as', 'demo/tiny')
  const pin = await manifestOf(outside)

  stage.step('It is written into one file: an OCI image layout in a tar, which skopeo and oras read as well')
  const bundle = join(outside.folder, 'tiny.tar')
  await outside.svc('export', 'oci', REF, bundle)
  stage.say(`  ${statSync(bundle).size} bytes`)
  await outside.stop()

  stage.step('The file crosses: a disk that is carried over')
  const medium = join(stage.folder, 'medium')
  mkdirSync(medium)
  copyFileSync(bundle, join(medium, 'tiny.tar'))
  const damaged = readFileSync(bundle)
  damaged[damaged.length >> 1]! ^= 1
  writeFileSync(join(medium, 'damaged.tar'), damaged)

  stage.step('A machine that never had a network: an empty store, no swarm, no hub')
  const inside = await stage.daemon('inside', QUIET)
  await inside.svc('ls')
  stage.say('  a copy with one flipped bit is refused, and nothing of it is to be seen:')
  const refused = await inside.svc('import', 'oci', join(medium, 'damaged.tar'), '--as', 'demo/damaged').then(
    () => false,
    (error: { stderr?: string }) => {
      stage.say(`  ${error.stderr?.trim().split('\n').at(-1)}`)
      return true
    }
  )
  if (!refused) throw new Error('a damaged bundle was taken')
  await inside.svc('import', 'oci', join(medium, 'tiny.tar'))
  await inside.svc('verify', REF)

  stage.step('It is the same model: the manifests have one digest')
  const arrived = await manifestOf(inside)
  stage.say(`  outside ${pin}\n  inside  ${arrived}`)
  if (arrived !== pin) throw new Error('another manifest arrived')
}

async function manifestOf(daemon: { svc(...args: string[]): Promise<string> }): Promise<string> {
  return JSON.parse(await daemon.svc('resolve', REF, '--json')).manifestDigest
}
