export function GetView() {
  return null
}
