export function MachineView() {
  return null
}
