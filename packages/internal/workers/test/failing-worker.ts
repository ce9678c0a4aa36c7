import { parentPort, workerData } from 'node:worker_threads'
import { type SupervisedData, supervisedData } from '../src/pulse.ts'

const port = parentPort!
port.postMessage({ kind: 'hello', data: supervisedData<unknown>() })
port.on('message', (message: string) => {
  switch (message) {
    case 'throw':
      setImmediate(() => {
        throw new Error('a defect')
      })
      return
    case 'reject':
      void Promise.reject(new Error('a rejection'))
      return
    case 'exit':
      process.exit(3)
      return
    case 'nonsense':
      return port.postMessage('nonsense')
    case 'memory': {
      const kept: unknown[] = []
      for (;;) kept.push(new Array(1_000_000).fill(kept.length))
    }
    case 'work': {
      for (let n = 0; n < 20_000_000; n++);
      const beats = Atomics.load((workerData as SupervisedData).pulse, 0)
      return port.postMessage({ kind: 'echo', message, beats })
    }
    case 'loop':
      port.postMessage({ kind: 'echo', message })
      for (;;);
    case 'close':
      return port.close()
    default:
      port.postMessage({ kind: 'echo', message })
  }
})
