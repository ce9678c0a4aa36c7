import { type FilePort, nodeFilePort } from '@svc/internal-files'

/** Opens and reads that waited on this thread. */
export const waited: string[] = []

/** Says that every folder is on a file system of that type of statfs(2). */
export default (type: number): FilePort => ({
  ...nodeFilePort,
  statfs: async (path) => ({ ...(await nodeFilePort.statfs(path)), type }),
  openSync: (path, flags, mode) => {
    waited.push('open')
    return nodeFilePort.openSync(path, flags, mode)
  },
  readSync: (...given) => {
    waited.push('read')
    return nodeFilePort.readSync(...given)
  },
  lstatSync: (path) => {
    waited.push('lstat')
    return nodeFilePort.lstatSync(path)
  }
})
