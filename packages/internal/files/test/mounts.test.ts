import { expect, test } from 'vitest'
import { fileSystemType, mountedType, parseMacMounts } from '../src/mounts.ts'

test('the mounts of a Mac', () => {
  const text = [
    '/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)',
    '/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)',
    '/dev/disk5s1 on /Volumes/My Disk (1) (exfat, local, nodev)',
    '//me@nas/models on /Volumes/models (smbfs, nodev, nosuid, mounted by me)'
  ].join('\n')
  const mounts = parseMacMounts(text)
  expect(mountedType(mounts, '/Users/me/.local/share/svc')).toBe('apfs')
  expect(mountedType(mounts, '/Volumes/models/svc')).toBe('smbfs')
  expect(mountedType(mounts, '/Volumes/models-2/svc')).toBe('apfs')
  expect(mountedType(mounts, '/Volumes/My Disk (1)/svc')).toBe('exfat')
  expect(mountedType([...mounts, { point: '/', type: 'overlay' }], '/')).toBe('overlay')
  expect(mountedType([], '/')).toBeUndefined()
})

test.runIf(process.platform === 'linux')('the type of a file system of this machine', () => {
  expect(fileSystemType('/proc/self', 'linux')).toBe('proc')
})
