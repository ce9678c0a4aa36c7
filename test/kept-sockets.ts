// Loaded first in a thread that the first tier keeps (see kept-threads.ts): when its owner closes it, the connections close as if the
// thread had ended.
import { once } from 'node:events'
import { Socket } from 'node:net'
import { type MessagePort, workerData } from 'node:worker_threads'

const open = new Set<Socket>()
const { connect } = Socket.prototype
Socket.prototype.connect = function (this: Socket, ...given: unknown[]): Socket {
  open.add(this)
  this.once('close', () => open.delete(this))
  return Reflect.apply(connect, this, given) as Socket
} as typeof connect

const { keptPort: port } = workerData as { readonly keptPort: MessagePort }
port.on('message', async () => {
  const closing = [...open].map((socket) => once(socket.destroy(), 'close'))
  await Promise.all(closing)
  port.postMessage(undefined)
})
port.unref()
