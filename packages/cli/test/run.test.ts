// Scripts stand in for the runtimes, and record their arguments; what these programs load is tested with the real ones.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeLlamaGgufs, makeProjectorGguf } from '@svc/testkit/llama-gguf'
import { makeModelFolder } from '@svc/testkit/models'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ok, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })

interface Machine extends TestDaemon {
  install(...programs: string[]): void
  /** The command lines since the last call. */
  ran(): string[]
  run(...args: string[]): ReturnType<TestDaemon['svc']>
}

async function machine(hub?: string): Promise<Machine> {
  const daemon = await testDaemon(
    hub === undefined ? {} : { fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub } } }
  )
  const bin = join(daemon.folder, 'bin')
  const record = join(daemon.folder, 'ran')
  mkdirSync(bin)
  return {
    ...daemon,
    install(...programs) {
      for (const name of programs) {
        // of a Modelfile, its text
        const text = `#!/bin/sh\necho ${name} "$@" >> '${record}'\n[ "$1" != create ] || cat "$4" >> '${record}'\nexit 7\n`
        writeFileSync(join(bin, name), name === 'ollama' ? text.replace('exit 7', '[ "$1" = create ]') : text)
        chmodSync(join(bin, name), 0o755)
      }
    },
    ran() {
      const lines = existsSync(record) ? readFileSync(record, 'utf8').trimEnd().split('\n') : []
      rmSync(record, { force: true })
      return lines
    },
    run: (...args) => daemon.svcWith(['run', ...args], { env: { PATH: `${bin}:/usr/bin:/bin`, HOME: daemon.folder } })
  }
}

it('svc run starts the first runtime that loads the model, with what lies beside it, and says so', async () => {
  const { folder, svc, run, install, ran } = await machine()
  const source = join(folder, 'vision')
  mkdirSync(source)
  writeFileSync(join(source, 'vision-q8_0.gguf'), makeLlamaGgufs()[0]!)
  writeFileSync(join(source, 'mmproj-f16.gguf'), makeProjectorGguf())
  expect(await svc('import', 'local', source, '--as', 'me/vision')).toMatchObject({ code: 0 })

  const none = await run('me/vision')
  expect(none).toMatchObject({ code: 1, stdout: '' })
  expect(none.stderr).toMatch(/llama-server, llama-cli, ollama\n.*get llama\.cpp/)

  install('llama-cli', 'ollama')
  const { stdout: path } = await svc('path', 'me/vision')
  const cli = await run('me/vision', '--', '-p', 'Hello there')
  expect(cli).toMatchObject({ code: 7, stdout: '' })
  expect(ran()).toEqual([`llama-cli -m ${path.trim()} -c 128 -p Hello there`])
  expect(cli.stderr).toContain(`running: llama-cli -m ${path.trim()} -c 128 -p 'Hello there'\n`)

  install('llama-server', 'vllm')
  await run('me/vision')
  const projector = (await svc('path', 'me/vision#mmproj')).stdout.trim()
  expect(ran()).toEqual([`llama-server -m ${path.trim()} -c 128 --mmproj ${projector}`])

  await run('me/vision', '--with', 'ollama')
  const [create, ...rest] = ran()
  expect(create).toMatch(/^ollama create me\/vision:q8_0 -f /)
  expect(rest).toEqual([
    `FROM ${path.trim()}`,
    `FROM ${projector}`,
    'PARAMETER num_ctx 128',
    'ollama run me/vision:q8_0'
  ])
  const vllm = await run('me/vision', '--with', 'vllm')
  expect(vllm).toMatchObject({ code: 2 })
  expect(vllm.stderr).toContain('vllm does not load a GGUF')
  expect(await run('me/vision', '--with', 'mlx_lm')).toMatchObject({ code: 2 })
  expect(ran()).toEqual([])
})

it('a run that finds no runtime leaves nothing in use', async () => {
  const { folder, svc, run } = await machine()
  writeFileSync(join(folder, 'a-q8_0.gguf'), makeLlamaGgufs()[0]!)
  expect(await svc('import', 'local', 'a-q8_0.gguf', '--as', 'me/a')).toMatchObject({ code: 0 })
  const { code, stderr } = await run('me/a')
  expect(code).toBe(1)
  expect(stderr).toMatch(/hint: get llama\.cpp/)
  expect(await svc('ps')).toMatchObject({ code: 0, stdout: '' })
})

it('a folder of safetensors goes to vllm', async () => {
  const { folder, svc, run, install, ran } = await machine()
  makeModelFolder(join(folder, 'Tiny'), { ggufs: {} })
  expect(await svc('import', 'local', 'Tiny', '--as', 'me/tiny')).toMatchObject({ code: 0 })
  install('llama-server', 'vllm')
  await run('me/tiny')
  const { stdout: path } = await svc('path', '--dir', 'me/tiny')
  expect(ran()[0]).toMatch(new RegExp(`^vllm serve ${path.trim()}( --max-model-len \\d+)?$`))
})

it('what only the hub has is imported first', async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  hub.commit({ id: 'Some/Model-GGUF', files: [{ path: 'Model-Q8_0.gguf', content: makeLlamaGgufs()[0]! }] })
  const { run, install, ran } = await machine(hub.endpoint)
  install('llama-server')
  for (const name of ['hf.co/Some/Model-GGUF:Q8_0', 'some/model-gguf', 'Some/Model-GGUF:Q8_0']) {
    expect(await run(name)).toMatchObject({ code: 7 })
    expect(ran()[0]).toMatch(/^llama-server -m \/\S+\.gguf -c 128$/)
  }
  const absent = await run('some/model-gguf:q4_k_m')
  expect(absent.code).not.toBe(0)
  expect(ran()).toEqual([])
})

it.skipIf(process.platform !== 'linux')('svc ps names the programs that have a model open (Linux)', async () => {
  const daemon = await testDaemon()
  writeFileSync(join(daemon.folder, 'a-q8_0.gguf'), makeLlamaGgufs()[0]!)
  await ok(daemon, 'import', 'local', 'a-q8_0.gguf', '--as', 'me/a')
  const before = await daemon.svc('ps')
  expect(before).toMatchObject({ code: 0, stdout: '' })
  const path = await ok(daemon, 'path', 'me/a')
  // a program that reads its input from the model, and waits
  const held = spawn('/bin/sh', ['-c', `exec 3< '${path}'; echo open; exec sleep 600`], {
    stdio: ['ignore', 'pipe', 'ignore']
  })
  onTestFinished(() => void held.kill())
  await once(held.stdout, 'data')
  const { holders } = JSON.parse(await ok(daemon, 'ps', '--json'))
  expect(holders).toEqual([
    { model: 'me/a:q8_0', kind: 'process', who: 'sleep', id: `${held.pid}`, since: expect.any(String) }
  ])
  expect(await ok(daemon, 'ps')).toMatch(new RegExp(`^me/a:q8_0 +sleep +${held.pid} `, 'm'))
})
