import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '../../packages/testkit/src/models.ts'
import type { Stage } from './stage.ts'

const REF = 'demo/tiny:bf16'
const QUIET = '[swarm]\nenabled = false\n'

/** Carries a model to an air-gapped machine, as one file. */
export async function run(stage: Stage): Promise<void> {
  stage.step('A machine with a model')
  const model = join(stage.folder, 'Tiny')
  makeModelFolder(model, { ggufs: {} })
  const outside = await stage.daemon('outside', QUIET)
  await outside.svc('import', 'local', model, '--as', 'demo/tiny')
  const pin = await manifestOf(outside)

  stage.step('Export it to one file: an OCI image layout in a tar, which skopeo and oras can read too')
  const bundle = join(outside.folder, 'tiny.tar')
  await outside.svc('export', 'oci', REF, bundle)
  stage.say(`  ${statSync(bundle).size} bytes`)
  await outside.stop()

  stage.step('Carry the file over on a disk')
  const medium = join(stage.folder, 'medium')
  mkdirSync(medium)
  copyFileSync(bundle, join(medium, 'tiny.tar'))
  const damaged = readFileSync(bundle)
  damaged[damaged.length >> 1]! ^= 1
  writeFileSync(join(medium, 'damaged.tar'), damaged)

  stage.step('A machine without a network: an empty store, no swarm, no hub')
  const inside = await stage.daemon('inside', QUIET)
  await inside.svc('ls')
  stage.say('  a copy with one flipped bit is rejected, and leaves nothing behind:')
  const refused = await inside.svc('import', 'oci', join(medium, 'damaged.tar'), '--as', 'demo/damaged').then(
    () => false,
    (error: { stderr?: string }) => {
      stage.say(`  ${error.stderr?.trim().split('\n').at(-1)}`)
      return true
    }
  )
  if (!refused) throw new Error('a damaged bundle was accepted')
  await inside.svc('import', 'oci', join(medium, 'tiny.tar'), '--as', 'demo/tiny')
  await inside.svc('verify', REF)

  stage.step('It is the same model: the manifest digests match')
  const arrived = await manifestOf(inside)
  stage.say(`  outside ${pin}\n  inside  ${arrived}`)
  if (arrived !== pin) throw new Error('the imported manifest is a different one')
}

async function manifestOf(daemon: { svc(...args: string[]): Promise<string> }): Promise<string> {
  return JSON.parse(await daemon.svc('resolve', REF, '--json')).manifestDigest
}
