// A launcher, as a desktop app has it in its main process: `launcher.ts ROOT` lists what is here, `launcher.ts ROOT REF COMMAND…` starts a
// runtime on one model, which stays in the store as long as the runtime has it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openOrConnect } from '@svc/library'

const [root, ref, command, ...words] = process.argv.slice(2)
const models = await openOrConnect({ root: root! })
try {
  if (ref === undefined || command === undefined) {
    for (const model of await models.list())
      console.log(model.ref, model.sizeBytes, model.isComplete ? '' : '(incomplete)')
  } else {
    const { files } = await models.ensure(ref)
    const weights = files.find(({ kind }) => kind === 'weights.gguf')!
    const runtime = spawn(command, [...words, weights.path], { stdio: 'inherit' })
    const [code] = await once(runtime, 'exit')
    process.exitCode = code ?? 1
  }
} finally {
  await models.close()
}
