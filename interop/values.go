package main

import (
	"encoding/hex"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/wmnsk/go-pfcp/ie"
)

// era is the number of seconds from 1900 to 1970.
const era = 2208988800

// readFields calls the getters of an element.
func readFields(element *ie.IE) (values []string, failed string) {
	defer func() {
		if reason := recover(); reason != nil {
			failed = fmt.Sprint("panic: ", reason)
		}
	}()
	for _, name := range getters[element.Type] {
		results := reflect.ValueOf(element).MethodByName(name).Call(nil)
		if err, _ := results[len(results)-1].Interface().(error); err != nil {
			return values, err.Error()
		}
		values = append(values, flatten(results[0])...)
	}
	return values, ""
}

// duration formats a duration in the largest of seconds, microseconds and nanoseconds that divides it.
func duration(length time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Microsecond} {
		if length%unit == 0 {
			return strconv.FormatInt(int64(length/unit), 10)
		}
	}
	return strconv.FormatInt(int64(length), 10)
}

// flatten formats the numbers, texts and bytes of a value, in order.
func flatten(value reflect.Value) []string {
	switch known := value.Interface().(type) {
	case net.IP:
		if known == nil {
			return nil
		}
		return []string{known.String()}
	case net.HardwareAddr:
		if known == nil {
			return nil
		}
		return []string{hex.EncodeToString(known)}
	case time.Duration:
		return []string{duration(known)}
	case time.Time:
		// Seconds since 1900 wrap around in 32 bits.
		return []string{strconv.FormatUint(uint64(uint32(known.Unix()+era)), 10)}
	case []byte:
		if known == nil {
			return nil
		}
		return []string{hex.EncodeToString(known)}
	case *ie.IE:
		return nil
	}
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return nil
		}
		return flatten(value.Elem())
	case reflect.Struct:
		var all []string
		for at := range value.NumField() {
			field := value.Type().Field(at)
			if field.IsExported() && !strings.Contains(field.Name, "Length") {
				all = append(all, flatten(value.Field(at))...)
			}
		}
		return all
	case reflect.Slice, reflect.Array:
		var all []string
		for at := range value.Len() {
			all = append(all, flatten(value.Index(at))...)
		}
		return all
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return []string{strconv.FormatUint(value.Uint(), 10)}
	case reflect.Int, reflect.Int64:
		return []string{strconv.FormatInt(value.Int(), 10)}
	case reflect.String:
		return []string{value.String()}
	default:
		return nil
	}
}
