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

// The seconds from 1900 to 1970.
const era = 2208988800

// read asks the getters of an element for its fields.
func read(one *ie.IE) (values []string, failed string) {
	defer func() {
		if reason := recover(); reason != nil {
			failed = fmt.Sprint("panic: ", reason)
		}
	}()
	for _, name := range getters[one.Type] {
		results := reflect.ValueOf(one).MethodByName(name).Call(nil)
		if err, _ := results[len(results)-1].Interface().(error); err != nil {
			return values, err.Error()
		}
		values = append(values, flat(results[0])...)
	}
	return values, ""
}

// duration writes the largest of seconds, microseconds and nanoseconds that is whole.
func duration(length time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Microsecond} {
		if length%unit == 0 {
			return strconv.FormatInt(int64(length/unit), 10)
		}
	}
	return strconv.FormatInt(int64(length), 10)
}

// flat writes the numbers, texts and octets of a value, one after another.
func flat(value reflect.Value) []string {
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
		// Seconds that do not fit begin again at zero.
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
		return flat(value.Elem())
	case reflect.Struct:
		var all []string
		for at := range value.NumField() {
			field := value.Type().Field(at)
			if field.IsExported() && !strings.Contains(field.Name, "Length") {
				all = append(all, flat(value.Field(at))...)
			}
		}
		return all
	case reflect.Slice, reflect.Array:
		var all []string
		for at := range value.Len() {
			all = append(all, flat(value.Index(at))...)
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
