import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'

/**
 * Starts a program that takes a port number and cannot choose one itself: tries others when somebody took the port in between.
 * @throws Error of the last of five starts
 */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    const port = await freePort()
    try {
      return await start(port)
    } catch (error) {
      if (tries === 5) throw error
    }
  }
}

/** Resolves when the program takes connections on `127.0.0.1:port`. @throws Error when it ends, or after half a minute */
export async function listening(name: string, child: ChildProcess, port: number): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`)
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false
    )
    socket.destroy()
    if (isOpen && child.exitCode === null) return
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error(`${name} does not answer`)
}

/** Ends the program and waits for it. Idempotent. */
export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
